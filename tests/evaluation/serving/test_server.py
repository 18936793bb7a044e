"""The server of exported models: TF Serving's form, wrong requests, the page in a browser."""

import http.client
import json
import socket
import threading
import time
from urllib.parse import quote

import numpy as np
import pytest

from aprec_like.errors import InputError
from evaluation import export, serve
from evaluation.inference import exported
from evaluation.serving import requests
from evaluation.serving.served_model import load_served_model
from evaluation.serving.server import ModelServer
from tests import browser
from tests.evaluation.inference.made_models import NAMES, make_models
from tests.evaluation.inference.test_export import best_unseen

PREDICT = "/v1/models/gSASRec:predict"
HISTORY = [2, 5, 3]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    data, run, *_ = made
    to = tmp_path_factory.mktemp("exports") / "gsasrec"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exported, "NUM_CHECKED_USERS", 5)
        patch.setattr("sys.argv", ["export", str(run.path), "--data", str(data), "--model", "gSASRec", "--to", str(to)])
        assert export.main() == 0
    return to


@pytest.fixture(scope="module")
def server(folder):
    with ModelServer(("127.0.0.1", 0), load_served_model(folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def ask(server, path, body=None, method=None):
    connection = http.client.HTTPConnection(*server.server_address, timeout=20)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method or ("GET" if body is None else "POST"), path, data)
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    return response.status, json.loads(answer)


def test_rows_and_columns_are_answered_as_by_the_model_itself(server, made):
    items, scores = best_unseen(made[3]["gSASRec"], HISTORY, 10)
    history, other = NAMES[HISTORY].tolist(), NAMES[[1]].tolist()
    for instances in ([history, other], [{"items": history}, {"items": other}]):
        status, answer = ask(server, PREDICT, {"instances": instances})
        first, second = answer["predictions"]
        assert status == 200 and first["ids"] == list(NAMES[items]) and second["num_known"] == 1
        np.testing.assert_allclose(first["scores"], scores, rtol=1e-5)
        np.testing.assert_allclose(first["probabilities"], 1 / (1 + np.exp(-scores)), rtol=1e-4)
    inputs = {"items": [history], "k": 100, "exclude_seen": False}
    status, answer = ask(server, PREDICT, {"signature_name": "recommend", "inputs": inputs})
    assert status == 200 and sorted(answer["outputs"]["ids"][0]) == sorted(NAMES)
    status, answer = ask(server, PREDICT, {"inputs": {"items": [history], "k": 100}})
    assert len(answer["outputs"]["ids"][0]) == 17 == len(answer["outputs"]["titles"][0])


def test_status_health_search_and_reasons(server):
    assert ask(server, "/health") == (200, {"status": "ok"})
    assert ask(server, "/v1/models/gSASRec")[1]["model_version_status"][0]["state"] == "AVAILABLE"
    assert ask(server, "/items?q=" + quote("FILM 3"))[1]["items"] == [
        {"id": "item-g", "title": "Film 3 (1996)"}, {"id": "item-h", "title": "Film 3 (1997)"},
    ]  # fmt: skip
    assert ask(server, "/items?q=item-c")[1]["items"][0]["id"] == "item-c"
    assert ask(server, "/items?q=")[1]["items"] == [] and ask(server, "/nothing")[0] == 404
    status, answer = ask(server, "/similarities", {"items": ["item-a", "item-b"], "recommended": ["item-b"]})
    assert status == 200 and answer["similarities"][0][1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "must be JSON"),
        (b"[" * 100_000, "must be JSON"),
        ([1], "must be a JSON object"),
        ({}, "either"),
        ({"instances": [["a"]], "inputs": [["a"]]}, "either"),
        ({"instances": []}, "1 to 128 histories"),
        ({"instances": [["a"]] * 129}, "1 to 128 histories"),
        ({"instances": [[1]]}, "are strings"),
        ({"instances": [[None]]}, "are strings"),
        ({"instances": [["\ud800"]]}, "are strings"),
        ({"instances": ["item-a"]}, "must be a list"),
        ({"instances": [["a"] * 5_001]}, "at most 5000 ids"),
        ({"inputs": {"items": [["a"]], "k": 0}}, "k must be"),
        ({"inputs": {"items": [["a"]], "k": True}}, "k must be"),
        ({"inputs": {"items": [["a"]], "exclude_seen": 1}}, "exclude_seen must be"),
        (b" " * (requests.MAX_BODY_BYTES + 1), "at most 1,048,576 bytes"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(server, body, message):
    status, answer = ask(server, PREDICT, body)
    assert status == 400 and message in answer["error"]


def raw(server, data):
    """Send bytes, and return the status line of the answer; empty if the server only closed the connection."""
    with socket.create_connection(server.server_address, timeout=20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return connection.makefile("rb").readline()


def test_answers_on_an_open_connection_wait_for_no_acknowledgement(server):
    """A delayed acknowledgement takes at least 40 ms on Linux; the fastest of many answers knows no other load."""
    connection = http.client.HTTPConnection(*server.server_address, timeout=20)
    seconds = []
    for _ in range(40):
        start = time.monotonic()
        connection.request("GET", "/health")
        connection.getresponse().read()
        seconds.append(time.monotonic() - start)
    connection.close()
    assert min(seconds[20:]) < 0.03


def test_a_thousand_malformed_requests_are_refused_without_a_traceback(server, capfd):
    random = np.random.default_rng(0)
    body = json.dumps({"inputs": {"items": [["item-a", "item-b"]], "k": 5, "exclude_seen": True}}).encode()
    request = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (PREDICT.encode(), len(body)) + body
    codes = []
    for number in range(1_000):
        changed = bytearray(request if number % 2 else body)
        for _ in range(random.integers(1, 8)):
            kind, place = random.integers(3), random.integers(len(changed))
            if kind == 0:
                changed[place] = random.integers(256)
            elif kind == 1:
                del changed[place : place + random.integers(1, 20)]
            else:
                changed[place:place] = random.bytes(random.integers(1, 9))
            changed = changed or bytearray(b"x")
        data = bytes(changed)
        if number % 2 == 0:
            data = b"POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (PREDICT.encode(), len(data)) + data
        line = raw(server, data)
        codes.append(int(line.split()[1]) if line.startswith(b"HTTP/") else 0)
    assert 500 not in codes and codes.count(400) > 300, np.unique(codes, return_counts=True)
    assert ask(server, "/health")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


def test_a_folder_that_is_no_export_is_refused(folder, tmp_path, monkeypatch, capsys):
    (tmp_path / "export.json").write_text('{"format": "onnx"}')
    with pytest.raises(InputError, match="exported as onnx"):
        load_served_model(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr("sys.argv", ["serve", str(folder), "--port", str(taken.getsockname()[1])])
        assert serve.run_command(serve.main) == 2
    assert "cannot listen on 127.0.0.1" in capsys.readouterr().err


@pytest.mark.skipif(not browser.is_installed(), reason="Chromium is not installed")
def test_the_page_recommends_in_a_browser_of_any_width(server, tmp_path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    def texts(selector):
        """All at once, so that the page can't change in between."""
        return driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((found) => found.innerText)", selector
        )

    expected = server.model.recommend([[NAMES[2], NAMES[5]]], 10, exclude_seen=True)[0]["titles"]

    def is_recommended(_):
        found = texts("#recommended tbody tr td:first-child")
        return len(found) == 10 and all(map(str.startswith, found, expected))

    with browser.open_browser() as driver:
        for width in (1280, 390):
            metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            driver.get(f"http://127.0.0.1:{server.server_address[1]}/")
            for title in ("Film 1 (1992)", "Film 2 (1995)"):
                driver.find_element(By.ID, "search").send_keys(title)
                WebDriverWait(driver, 20).until(lambda _: len(texts("#found button")) == 1)
                driver.find_element(By.CSS_SELECTOR, "#found button").click()
            WebDriverWait(driver, 20).until(is_recommended)
            assert "Film" in texts("#recommended .why")[0]
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width
            browser.save_screenshot(driver, tmp_path / f"page-{width}.png")
            driver.find_elements(By.CSS_SELECTOR, "ol button")[0].click()
            WebDriverWait(driver, 20).until(lambda _: len(texts("ol li")) == 1)
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
