import pytest
import tensorflow as tf

from aprec_like.models import SASRec
from evaluation.benchmarking.traced_step import read_traced_step, without_weights


def read(function, *specs):
    return read_traced_step(tf.function(function, input_signature=specs).get_concrete_function())


@pytest.mark.parametrize("is_captured", [False, True])
def test_a_product_in_a_loop_counts_as_often_as_the_loop_runs(is_captured):
    def step(x, y):
        limit = tf.shape(x)[0] - 1 if is_captured else 3  # a tensor is an argument of the loop's condition

        def body(number, total):
            return number + 1, total + tf.matmul(x, y) * total

        return tf.while_loop(lambda number, _: number < limit, body, (tf.constant(0), tf.zeros([4, 6])))[1]

    found = read(step, tf.TensorSpec([4, 5]), tf.TensorSpec([5, 6]))
    products = [kernel for kernel in found.step.kernels if kernel.num_flops]
    assert found.num_chunks == 3
    assert [kernel.num_flops for kernel in products] == [2 * 4 * 5 * 6] * len(products)
    assert len(products) in (1, 3)  # Grappler may compute it once
    sums = [kernel for kernel in found.step.kernels if not kernel.num_flops]
    assert [kernel.num_bytes for kernel in sums] == [
        3 * 4 * 4 * 6
    ] * 6  # three products and three sums, two inputs each


def test_a_compiled_function_has_the_kernels_of_its_hlo():
    @tf.function(jit_compile=True)
    def scaled(x):
        return tf.exp(x) * 2.0 + 1.0

    found = read(lambda x: scaled(x), tf.TensorSpec([10]))
    assert [kernel.num_bytes for kernel in found.step.kernels] == [2 * 40]  # three operations, one fusion


def test_a_gather_reads_its_rows_and_adam_passes_over_the_whole_table():
    with without_weights():
        table, mean, square = (tf.Variable(lambda: tf.zeros([1_000_000_000, 8])) for _ in range(3))  # 32 GB each

        @tf.function(input_signature=[tf.TensorSpec([5], tf.int64)])
        def step(ids):
            return tf.gather(table, ids)

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def update(rate):
            handles = {"var": table.handle, "m": mean.handle, "v": square.handle}
            powers = {"beta1_power": rate, "beta2_power": rate, "beta1": rate, "beta2": rate, "epsilon": rate}
            tf.raw_ops.ResourceApplyAdam(**handles, **powers, lr=rate, grad=tf.fill([1_000_000_000, 8], rate))

        gather, adam = step.get_concrete_function(), update.get_concrete_function()
    (rows,) = read_traced_step(gather).step.kernels
    assert rows.num_bytes == 2 * 4 * 5 * 8 + 8 * 5
    largest = max(kernel.num_bytes for kernel in read_traced_step(adam).step.kernels)
    assert 7 * 4 * 8e9 <= largest <= 7 * 4 * 8.001e9


def test_what_is_computed_on_the_host_is_no_kernel_but_a_transfer():
    """A GPU adds int32 on the host and int64 on the device."""
    on_host = read(lambda x: tf.cast(x + 1, tf.float32), tf.TensorSpec([100], tf.int32))
    assert len(on_host.step.kernels) == 1 and on_host.transfers == (400,)
    on_device = read(lambda x: tf.cast(x + 1, tf.float32), tf.TensorSpec([100], tf.int64))
    assert len(on_device.step.kernels) == 2 and on_device.transfers == ()


def test_a_sum_of_floats_at_repeated_indices_is_a_float_scatter():
    def step(x, ids):
        return tf.tensor_scatter_nd_add(x, ids, tf.ones([3]))

    found = read(step, tf.TensorSpec([100]), tf.TensorSpec([3, 1], tf.int64))
    assert found.step.num_float_scatters == 1


def test_a_network_is_built_without_its_weights():
    with without_weights():
        network = SASRec(max_length=4, embedding_dim=1024, num_blocks=1).build(100_000_000)  # 410 GB each table
    assert max(tuple(variable.shape) for variable in network.weights) >= (100_000_000, 1024)
