// Run the tests of the extension's parts.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runTests } from "../../web/tools/run_tests.mjs";

process.exit(await runTests(join(dirname(fileURLToPath(import.meta.url)), "..")));
