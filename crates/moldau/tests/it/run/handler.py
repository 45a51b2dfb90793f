"""Does what the value of each record says; sends on those that it handles."""
import json
import os
import sys
import time

NAME = os.environ.get("NAME", "")
with open(f"pids{NAME}", "a") as pids:
    pids.write(f"{os.getpid()}\n")
print(json.dumps({"moldau": 1}), flush=True)


def failures(record):
    value, attempt = record["value"], record["attempt"]
    if value == "kill":
        os.kill(os.getpid(), 9)
    if value == "exit":
        sys.exit(3)
    if value == "hang":
        time.sleep(10000)
    if value == "garbage":
        print("hello", flush=True)
    if value == "long":
        while True:
            print("x" * 65536, end="")
    if value == "unknown":
        return {"id": 999999, "ok": True}
    if value == "fail":
        return {"error": f"it fails {attempt}"}
    if value == "never":
        return {"error": "it never works", "retry": False}
    if value == "later" and attempt < 3:
        return {"error": "not yet", "retry_after_ms": 1}
    return None


def produced(record):
    return {"topic": "out", "key": record["key"], "value": record["value"],
            "headers": [["by", NAME], ["process", os.environ["MOLDAU_PROCESS"]]]}


for line in sys.stdin:
    request = json.loads(line)
    reply = {"id": request["id"]}
    if "records" in request:
        for record in request["records"]:
            record["attempt"] = request["attempt"]
        bad = {place: failures(it) for place, it in enumerate(request["records"])}
        bad = {place: failure for place, failure in bad.items() if failure}
        if bad:
            reply |= next(iter(bad.values())) | {"failed": list(bad)}
        else:
            reply |= {"ok": True, "produce": [produced(it) for it in request["records"]]}
    else:
        failure = failures(request)
        reply |= failure or {"ok": True, "produce": [produced(request)]}
    print(json.dumps(reply), flush=True)
