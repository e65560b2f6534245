"""One search with atheris, in a process that the search ends: ``python -m tests.fuzz.search NAME RUNS SEED``."""

# atheris has no types.
# pyright: reportMissingTypeStubs=false, reportMissingImports=false, reportMissingModuleSource=false
# pyright: reportUnknownMemberType=false, reportAttributeAccessIssue=false
# pyright: reportUnknownVariableType=false
from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.fuzz.__main__ import FOUND, LONGEST_BYTES, SLOWEST_S


def main() -> None:
    """Instrument the code of the server and search."""
    import atheris

    name, runs, seed = sys.argv[1:]
    kept = FOUND / name / "corpus"
    kept.mkdir(parents=True, exist_ok=True)
    # Modules that are imported later are instrumented as well, hence the search runs within the block.
    with atheris.instrument_imports(include=["jumpseat", "jumpseat_protocol"]):
        from tests.fuzz.corpus import seeds
        from tests.fuzz.targets import TARGETS

        target = TARGETS[name]
        folder = Path(tempfile.mkdtemp())
        begin = folder / "seeds"
        begin.mkdir()
        for number, content in enumerate(seeds(name, target)):
            (begin / str(number)).write_bytes(content)
        words = folder / "words"
        words.write_text("".join(f'"{_escaped(piece.encode())}"\n' for piece in target.pieces if piece))
        with target.open() as check:
            atheris.Setup(
                [
                    sys.argv[0],
                    str(kept),
                    str(begin),
                    f"-runs={runs}",
                    f"-seed={seed}",
                    f"-max_len={LONGEST_BYTES}",
                    f"-dict={words}",
                    f"-artifact_prefix={FOUND / name}/",
                    f"-timeout={SLOWEST_S}",
                    "-rss_limit_mb=0",
                    "-print_final_stats=1",
                    "-verbosity=0",
                ],
                check,
            )
            atheris.Fuzz()


def _escaped(piece: bytes) -> str:
    """Return a piece in the syntax of libFuzzer's dictionaries."""
    return "".join(f"\\x{byte:02X}" for byte in piece)


if __name__ == "__main__":
    main()
