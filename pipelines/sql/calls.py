"""Which functions an SQL expression calls, with what text as arguments, by sqlglot's tokenizer of Spark's dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

_NAME = re.compile(r"[A-Za-z_]\w*$")
_WORDS = frozenset(  # that may stand before a parenthesis without being called
    ["and", "or", "not", "in", "like", "ilike", "between", "when", "then", "else", "case", "is", "any", "all",
     "some", "over", "as", "div", "interval", "from", "for", "distinct", "placing", "end", "escape"])
_TYPES = frozenset({"decimal", "dec", "numeric", "varchar"})  # decimal(10, 2) is a type, decimal(x) a call
_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)


@dataclass(frozen=True)
class Call:
    """`name` in lower case; the call is text[start:end]; `arguments` as they are written."""

    name: str
    start: int
    end: int
    arguments: tuple[str, ...]


def calls(text: str) -> list[Call]:
    """In the order in which they are written, outer before inner; none where the text cannot be cut into tokens."""
    try:
        tokens = Spark().tokenize(text)
    except TokenError:
        return []
    return [_call(text, tokens, at) for at in range(len(tokens) - 1) if _is_call(tokens, at)]


def _is_call(tokens: Sequence[Token], at: int) -> bool:
    token, follows = tokens[at], tokens[at + 1]
    if follows.token_type != TokenType.L_PAREN or token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
        return False
    name = token.text.lower()
    digits = at + 2 < len(tokens) and tokens[at + 2].token_type == TokenType.NUMBER
    return bool(_NAME.match(name)) and name not in _WORDS and not (name in _TYPES and digits)


def _call(text: str, tokens: Sequence[Token], at: int) -> Call:
    bounds = [tokens[at + 1].end + 1]
    end = len(text)
    for token, depth in _depths(tokens[at + 1:]):
        if depth == 1 and token.token_type == TokenType.COMMA:
            bounds += [token.start, token.end + 1]
        if depth == 0:
            bounds.append(token.start)
            end = token.end + 1
            break
    else:
        bounds.append(end)
    pieces = [text[a:b].strip() for a, b in zip(bounds[::2], bounds[1::2], strict=True)]
    return Call(tokens[at].text.lower(), tokens[at].start, end, tuple(pieces) if pieces != [""] else ())


def _depths(tokens: Sequence[Token]) -> Iterator[tuple[Token, int]]:
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        yield token, depth
