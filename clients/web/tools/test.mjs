// Run the tests of the page's parts.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runTests } from "./run_tests.mjs";

process.exit(await runTests(join(dirname(fileURLToPath(import.meta.url)), "..")));
