import tensorflow as tf

from evaluation.benchmarking import gpu_kernels


def trace(function, *specs):
    return tf.function(function, input_signature=specs).get_concrete_function().graph


def without_kernel(operations):
    return {each.type for each in operations if gpu_kernels.host_arguments(each) is None}


def test_a_gpu_sums_int32_by_segments_but_not_int64():
    ids = tf.TensorSpec([5], tf.int64)
    for dtype, missing in ((tf.int32, set()), (tf.int64, {"UnsortedSegmentSum"})):
        graph = trace(lambda ids, dtype=dtype: tf.math.unsorted_segment_sum(tf.ones([5], dtype), ids, 3), ids)
        assert without_kernel(gpu_kernels.walk_operations(graph)) == missing


def test_a_gpu_reshapes_int32_on_the_host_and_floats_on_the_device():
    for dtype, num_bytes in ((tf.int32, 24), (tf.float32, 8)):
        graph = trace(lambda x: tf.reshape(x, [2, 3]), tf.TensorSpec([6], dtype))
        (reshape,) = [each for each in graph.get_operations() if each.type == "Reshape"]
        assert gpu_kernels.max_host_bytes(reshape) == num_bytes  # else that of the shape


def test_operations_inside_xla_are_looked_up_in_its_compiler_for_gpus():
    @tf.function(jit_compile=True)
    def compiled(x):
        if tf.reduce_sum(x) > 0:
            x = tf.strings.to_number(tf.strings.as_string(x)) * 2
        return x

    compiled_sum = tf.function(lambda x: tf.reduce_sum(x), jit_compile=True)
    compiled_sum(tf.ones([3]))
    graph = trace(lambda x: compiled(x) + compiled_sum(x), tf.TensorSpec([3]))
    inside = list(gpu_kernels.walk_compiled_operations(graph))
    assert {each.type for each in inside if not gpu_kernels.has_compiled_kernel(each)} == {"AsString", "StringToNumber"}
    assert {"Sum", "Mul"} <= {each.type for each in inside}
    assert not {"Sum", "Mul"} & {each.type for each in gpu_kernels.walk_operations(graph)}
