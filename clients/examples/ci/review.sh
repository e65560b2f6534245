#!/bin/sh
# Have an agent review the changes of a branch, in continuous integration. It has tools for reading only.
# The answer is in review.md; the exit code is 0 if there is one.
set -eu

base=${1:-origin/main}
git diff "$base...HEAD" > changes.diff
jumpseat run --tools view,grep,glob --allow-tool read --max-tokens 500000 \
    "Review changes.diff, the changes of this branch. List faults only, each with file and line." > review.md
