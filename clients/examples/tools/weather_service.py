import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

CELSIUS = {"Oslo": (4, "snow"), "Lima": (21, "fog")}


class Weather(BaseHTTPRequestHandler):
    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query)
        city, units = query["city"][0], query["units"][0]
        if city not in CELSIUS:
            self.send_error(404)
            return
        degrees, condition = CELSIUS[city]
        degrees = degrees if units == "celsius" else degrees * 9 / 5 + 32
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"city": city, "temperature": degrees, "condition": condition}).encode())

    def log_message(self, *args):
        pass


print("the weather service listens on port 8123", flush=True)
HTTPServer(("127.0.0.1", 8123), Weather).serve_forever()
