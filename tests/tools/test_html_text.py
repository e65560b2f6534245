"""HTML as Markdown, malicious pages included."""

from __future__ import annotations

import time

import pytest

from jumpseat.tools import html_text
from jumpseat.tools.html_text import CHUNK_CHARACTERS, LONGEST_REST, TIME_LIMIT_S, html_to_markdown


def md(html: str) -> str:
    return html_to_markdown(html, "https://site.example/dir/page.html")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one   two\n three</p><p>four<br>five", "one two three\n\nfour\nfive"),
        ("<title>T &amp; U</title><p>x", "# T & U\n\nx"),
        ("<title>T</title><h1>T</h1><p>x", "# T\n\nx"),
        ("<h1>a</h1><h3>b <em>c</em></h3>", "# a\n\n### b c"),
        ("<ul><li>a<li><p>b</p><ul><li>c</ul></ul><p>d", "- a\n- b\n  - c\n\nd"),
        ("<ol start=3><li>a<li>b</ol>", "3. a\n4. b"),
        ("<ol start='-1e9'><li>a</ol>", "1. a"),
        ("</ul></ol></blockquote></pre></table><li>a", "- a"),
        ("<blockquote><p>a<p>b</blockquote>c", "> a\n\n> b\n\nc"),
        ("<pre>\n a\n  <b>b</b> &lt;\n</pre>", "```\n a\n  b <\n```"),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("use <code>x &lt; y</code> or <code></code>", "use `x < y` or"),
        ("<table><tr><th>a<th>b<tr><td><p>1</p><td><br>2</table>", "a | b\n1 | 2"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ('<a href="/x y">a <b>b</b></a> c', "[a b](https://site.example/x%20y) c"),
        ('see<a href="?q=1"> this</a>.', "see [this](https://site.example/dir/page.html?q=1)."),
        (
            '<a href="http://o.example/a_(b)"><h2>Card</h2><p>text</p></a>',
            "## [Card](http://o.example/a_(b%29)\n\ntext",
        ),
        ('<a href="#top">up</a> <a href="javascript:x()">js</a> <a href="mailto:a@b">m</a> <a>n</a>', "up js m n"),
        ('<a href="http://[bad">x</a>', "x"),
        ('<a href="/x"></a>y', "y"),
        ('<img src="p.png" alt="A  cat"><img src=x><img alt=y>', "![A cat](https://site.example/dir/p.png)"),
        ("a<script>if (1 < 2) '<p>'</script><style>p{}</style><svg><text>s</text></svg>b", "ab"),
        ("<nav><a href=/m>menu</a></nav><button>go</button><template><p>t</template>x", "x"),
        ('<div aria-hidden="true">h<div>i</div></div>x', "x"),
        ("a &copy; &#x41; &nope; &#0;b", "a © A &nope; \ufffdb"),
        ("1 < 2 & 3 > 2", "1 < 2 & 3 > 2"),
        ("a<!-- c -->b<![CDATA[d]]>e<?f?>g", "abeg"),
        ("", ""),
    ],
)
def test_html_is_converted_to_markdown(html: str, text: str) -> None:
    assert md(html) == text


def test_only_the_main_part_is_shown_if_it_is_long_enough() -> None:
    long = "words " * 50
    assert md(f"<header>h</header><main><p>{long}</main><footer>f</footer>") == long.strip()
    assert md("<header>h</header><main>m</main><footer>f</footer>") == "h\n\nm\n\nf"
    assert md(f"<p>a<main><p>{long}") == long.strip()
    assert md(f"<title>T</title><p>a<main><p>{long}</main><main>b</main>") == f"# T\n\n{long.strip()}"


@pytest.mark.parametrize("piece", [1, 2, 3, 7])
def test_the_size_of_chunks_does_not_change_the_result(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    html = "<title>T</title><p>a &amp; b <a href='/x'>c</a></p><script>x</script><pre>d\n e</pre>" * 3
    whole = md(html)
    monkeypatch.setattr(html_text, "CHUNK_CHARACTERS", piece)
    # At most one chunk remains at the end.
    assert md(html) == whole


@pytest.mark.thorough
@pytest.mark.parametrize(
    "piece",
    [
        "<div>", "<ul><li>", "<", "<a ", "<a x=", "<a x='\"", '<a href="', "</a ", "<!--", "<![CDATA[", "<?", "&",
        "<pre>", "<script>", "<table><tr><td>",
    ],
)  # fmt: skip
def test_malicious_pages_are_converted_in_bounded_time(piece: str) -> None:
    started = time.process_time()
    # An unfinished tag is read in another way at the end of a short page than at that of a long one.
    for characters in (LONGEST_REST, CHUNK_CHARACTERS - 1, 2 * CHUNK_CHARACTERS):
        html = piece * (characters // len(piece))
        assert len(md(html)) <= 2 * len(html)
    assert time.process_time() - started < TIME_LIMIT_S


def test_deep_quotes_do_not_multiply_the_length_of_a_page() -> None:
    html = "<blockquote>x" * 2_000
    assert len(md(html)) <= 2 * len(html)


def test_a_page_that_takes_too_long_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_text, "TIME_LIMIT_S", 0)
    monkeypatch.setattr(html_text, "CHUNK_CHARACTERS", 12)
    assert md("<p>first</p><p>second</p>") == "first\n\n[The rest of this page takes too long to convert.]"
