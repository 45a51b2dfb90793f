"""An HTTP service that takes orders on port 8080, or the port given."""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Orders(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sys.stdout.write(f"{order['key']} orders {order['value']}\n")
        sys.stdout.flush()
        self.send_response(422 if order["value"] is None else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
ThreadingHTTPServer(("127.0.0.1", port), Orders).serve_forever()
