"""The table of commands that only read, with their harmless options; see :mod:`jumpseat.agent.shell.harmless`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_DIFF: Final = (
    "-pubwaRWzsU:M?C? --name-only --name-status --cached --staged --no-color --color? --word-diff?"
    " --stat? --shortstat --numstat --summary --patch --no-patch --unified= --ignore-all-space"
    " --ignore-space-change --ignore-blank-lines --diff-filter= --find-renames? --no-ext-diff"
    " --no-textconv --exit-code --quiet --check --histogram --patience --minimal --raw --abbrev?"
    " --full-index --function-context --no-renames --relative? --no-prefix --text --color-words?"
    " --merge-base --compact-summary -S:G: @ :"
)
_LOG: Final = (
    f"{_DIFF} -# -n:iEFPL:g --oneline --graph --all --decorate? --max-count= --since= --until= --after="
    " --before= --author= --committer= --grep= --pretty? --format= --abbrev-commit --reverse --follow"
    " --merges --no-merges --first-parent --date= --topo-order --date-order --skip= --branches? --tags?"
    " --remotes? --left-right --cherry-pick --no-decorate --walk-reflogs --count"
)
_DIGEST: Final = "-btz --binary --text --tag"
_GREP: Final = (
    "-#ivnrlcowxhHEFGPqsze:f:m:A:B:C: -aILT --color? --colour? --include= --exclude= --exclude-dir="
    " --ignore-case --recursive --line-number --files-with-matches --files-without-match --count"
    " --only-matching --word-regexp --line-regexp --no-filename --with-filename --extended-regexp"
    " --fixed-strings --perl-regexp --quiet --silent --no-messages --regexp= --file= --max-count="
    " --after-context= --before-context= --context= --invert-match --null --text --binary-files="
)

READING: Final[Mapping[str, str]] = {
    # Commands that only read.
    "arch": "<0",
    "b2sum": _DIGEST,
    "base64": "-diw: --decode --wrap= --ignore-garbage <1",
    "basename": "-aszs: --suffix=",
    "cat": "-AbeEnstTuv --number --show-all --squeeze-blank",
    "cd": "<1",
    "cmp": "-blsn:i: --bytes= --silent --quiet --print-bytes",
    "cksum": "",
    "col": "-bfhpxl: <0",
    "column": "-tns:c:xN:J",
    "comm": "-123 --output-delimiter= --total --check-order",
    "cut": (
        "-b:c:d:f:szn --complement --delimiter= --fields= --characters= --bytes= --output-delimiter="
        " --only-delimited"
    ),
    "date": "-uRI?d:r: --date= --utc --rfc-3339= --iso-8601? --reference= + <1",
    "diff": (
        "-uqsywbBiNacpdU:C:W: --color? --brief --unified? --side-by-side --ignore-all-space --ignore-case"
        " --ignore-blank-lines --ignore-space-change --suppress-common-lines --new-file"
        " --report-identical-files --text --width= --strip-trailing-cr"
    ),
    "dirname": "-z",
    "du": (
        "-shacbkmd:x --max-depth= --apparent-size --total --summarize --human-readable --all --bytes"
        " --exclude= --time?"
    ),
    "df": "-hTiklaP --human-readable --total --output? --local",
    "echo": "*",
    "expand": "-it: --initial --tabs=",
    "factor": "",
    "false": "*",
    "fd": (
        "-HIasige:t:d:E:p --hidden --no-ignore --absolute-path --case-sensitive --ignore-case --glob --extension="
        " --type= --max-depth= --min-depth= --exclude= --full-path --fixed-strings --max-results= --color="
    ),
    "file": "-bi --mime --mime-type --brief",
    "fmt": "-#cstuw:p:g: --width= --goal= --prefix= --split-only --tagged-paragraph --uniform-spacing",
    "fold": "-bsw: --width=",
    "free": "-hmgbkt",
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "find": (
        "/name= /iname= /path= /ipath= /wholename= /type= /maxdepth= /mindepth= /size= /mtime= /mmin= /atime="
        " /ctime= /newer= /not /o /a /or /and /print /print0 /prune /empty /regex= /iregex= /regextype= /perm="
        " /user= /group= /xdev /mount /depth /ls /printf= /readable /writable /executable /links= /inum= /quit"
        " /true /false"
    ),
    "groups": "<1",
    "head": "-#n:c:qvz --lines= --bytes= --quiet --verbose",
    "hexdump": "-Cbcdoxvn:s:",
    "hostname": "-fsidI <0",
    "iconv": "-f:t:cs --from-code= --to-code= --list",
    "id": "-ungGrz --user --group --name --groups",
    "join": "-1:2:t:a:v:e:o:j:iz --ignore-case --header --check-order --nocheck-order",
    "jq": (
        "-rcneSsjMCRa --arg= --argjson= --raw-output --compact-output --null-input --exit-status --sort-keys"
        " --slurp --raw-input --slurpfile= --rawfile= --tab --indent= --color-output --monochrome-output"
        " --join-output"
    ),
    "locale": "-a <0",
    "lscpu": "-aeJ <0",
    "ls": (
        "-#1aAbBcCdfFgGhiIklmnNopqQrRsStTuUvwxXZ --color? --all --almost-all --human-readable --recursive"
        " --reverse --size --sort= --time= --time-style= --group-directories-first --full-time --inode"
        " --classify? --directory --numeric-uid-gid --hide= --ignore= --format= --no-group --quoting-style="
        " --zero"
    ),
    "md5sum": _DIGEST,
    "nl": "-b:n:w:s:v:i:",
    "nproc": "--all",
    "numfmt": (
        "-d:z --from= --to= --field= --format= --padding= --suffix= --delimiter= --header? --round= --grouping"
    ),
    "od": "-A:t:N:j:w?cxbdovav",
    "paste": "-d:sz",
    "pr": "-#tmTdJw:l:h:o:",
    "printenv": "-0",
    "printf": "!",
    # Not the operands with an `e`, nor -E: they show the environments of all programs.
    "ps": (
        "-AaNdefFjlLTHwWMyZcxrm#u:U:g:G:p:q:t:C:s:o:k: --sort= --no-headers --forest --pid= --ppid= --user="
        " --format= --headers --width= --cols= --columns= --rows= --cumulative =aAuxfjlwrTgHhmLsvXcn,0123456789"
    ),
    "pwd": "-LP",
    "readlink": "-femnqsvz",
    "realpath": "-emsqzLP --relative-to= --relative-base=",
    "rev": "",
    "rg": (
        "-#inlcowvFSsuUNHhIxpqaP0e:g:t:T:A:B:C:m:M:j:f:r:d: --ignore-case --line-number --files"
        " --files-with-matches --files-without-match --count --count-matches --only-matching --word-regexp"
        " --invert-match --fixed-strings --smart-case --hidden --no-ignore --no-ignore-vcs --glob= --iglob="
        " --type= --type-not= --type-list --after-context= --before-context= --context= --max-count="
        " --max-columns= --max-depth= --multiline --no-heading --heading --no-filename --with-filename --json"
        " --color= --sort= --sortr= --stats --vimgrep --column --pcre2 --regexp= --replace= --trim"
        " --no-messages --passthru --null"
    ),
    "seq": "-ws:f:",
    "sha1sum": _DIGEST,
    "sha256sum": _DIGEST,
    "sha512sum": _DIGEST,
    # Not -o, which writes, nor --random-source.
    "shuf": "-n:i:ezr --head-count= --input-range= --echo --zero-terminated --repeat",
    "sleep": "*",
    "sort": (
        "-nruhVfbdgMscziRk:t:S: --numeric-sort --reverse --unique --key= --field-separator="
        " --human-numeric-sort --version-sort --ignore-case --stable --check? --parallel= --random-sort"
        " --zero-terminated"
    ),
    "stat": "-c:ftx --format= --printf= --terse --file-system",
    "strings": "-#an:t:",
    "tac": "-brs:",
    "sum": "-rs",
    "tail": "-#n:c:qvzfFs: --lines= --bytes= --follow? --quiet --retry --pid= +",
    "tr": "-cCdst --complement --delete --squeeze-repeats",
    "tree": (
        "-adfhisDCNpugFtrL:I:P: --dirsfirst --noreport --prune --gitignore --du --filelimit= --matchdirs"
        " --ignore-case"
    ),
    "true": "*",
    "tsort": "",
    "tty": "-s <0",
    "type": "-tapPf",
    "uname": "*",
    "unexpand": "-at: --all --first-only --tabs=",
    "uniq": "-cdDuizf:s:w: --count --repeated --unique --ignore-case --skip-fields= --skip-chars= <1",
    "uptime": "-ps",
    "wc": "-clLmw --lines --words --bytes --chars --max-line-length",
    "which": "-as",
    "whoami": "",
    "xxd": "-l:s:g:c:pubi <1",
    "git status": (
        "-sbzvu?  --short --branch --porcelain? --long --untracked-files? --ignored? --ahead-behind"
        " --no-ahead-behind --show-stash --renames --no-renames --verbose :"
    ),
    "git rev-parse": "*",
    "git ls-files": (
        "-cdmoistuzvkx: --others --modified --deleted --cached --stage --exclude-standard --full-name"
        " --error-unmatch --ignored --directory --exclude= --unmerged --killed :"
    ),
    "git ls-tree": "-rltdz --name-only --full-tree --name-status --abbrev? --long --full-name",
    "git describe": (
        "--tags --always --dirty? --long --abbrev? --all --match= --exact-match --contains --first-parent"
        " --exclude="
    ),
    "git log": _LOG,
    "git diff": _DIFF,
    "git show": _LOG,
    "git rev-list": _LOG,
    "git reflog show": _LOG,
    "git whatchanged": _LOG,
    "git blame": (
        "-L:wseflpMCt --date= --porcelain --since= --reverse --root --show-email --line-porcelain"
        " --ignore-rev= --abbrev="
    ),
    "git shortlog": "-sne --summary --numbered --email --since= --until= --no-merges --group=",
    "git cat-file": "-ptse",
    "git merge-base": "--is-ancestor --all -a --octopus --fork-point",
    "git show-ref": "-dsq --heads --tags --verify --hash? --head",
    "git for-each-ref": "--format= --sort= --count= --contains? --merged? --points-at=",
    "git check-ignore": "-vnq --verbose --no-index",
    "git count-objects": "-vH",
    "git diff-tree": f"{_DIFF} -rt --no-commit-id --root",
    "git stash list": _LOG,
    "git stash show": _DIFF,
    "git remote": "-v <0",
    "git remote show": "-n",
    "git remote get-url": "--all --push",
    "git reflog": "-# -n: --all --date= <0",
    "git worktree list": "-v --porcelain --verbose",
}
