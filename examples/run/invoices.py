"""Sends an invoice for each order. An order is done once its invoice is stored."""
import json
import sys

print(json.dumps({"moldau": 1}), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    reply = {"id": order["id"]}
    if isinstance(order["value"], dict) and "total" in order["value"]:
        invoice = {"to": order["key"], "amount": order["value"]["total"]}
        reply["ok"] = True
        reply["produce"] = [{"topic": "invoices", "key": order["key"], "value": invoice}]
    else:
        reply["error"] = "the order has no total"
        reply["retry"] = False
    print(json.dumps(reply), flush=True)
