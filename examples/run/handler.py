import json
import sys

print(json.dumps({"moldau": 1}), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    print(f"{order['key']} orders {order['value']}", file=sys.stderr)
    print(json.dumps({"id": order["id"], "ok": True}), flush=True)
