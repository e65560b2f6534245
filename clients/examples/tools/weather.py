import json
import urllib.error
import urllib.parse
import urllib.request


def get_weather(self, args):
    query = urllib.parse.urlencode({"city": args["city"], "units": args.get("units", "celsius")})
    try:
        with urllib.request.urlopen(f"{self.env['url']}/weather?{query}", timeout=10) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return {"status": "error", "data": f"The service does not know {args['city']} ({error.code})"}
    except OSError as error:
        return {"status": "error", "data": f"The service cannot be reached: {error}"}


def success(self, tools, stdout):
    report = stdout[-1]
    tools.chat.add_tool_output(self, f"{report['city']}: {report['temperature']} degrees, {report['condition']}")


TOOL = {
    "name": "get_weather",
    "description": "Get the current weather for a city",
    "parameters": {
        "city": {"type": "string", "description": "The name of the city, such as Oslo"},
        "units": {"enum": ["celsius", "fahrenheit"], "optional": True},
    },
    "cmds": [get_weather],
    "output": {"success": success},
    "env": {"url": "http://127.0.0.1:8123"},
    "requires_approval": False,
    "timeout_s": 15,
}
