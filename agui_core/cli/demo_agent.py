"""The assistant of `agui demo`: three deterministic tools, and rules in place of a model. Works offline.

It knows four kinds of questions. Each has a plan: a function from the tools' results so far to the next call or to the
answer. When a tool fails, the assistant says so and makes nothing up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from decimal import Context, Decimal, Inexact, localcontext
from typing import Annotated, Any, NoReturn, TypeAlias

from msgspec import Meta

from agui_core.protocol.base import UNSET
from agui_core.protocol.messages import Message, ToolMessage, UserMessage
from agui_core.protocol.run import ToolDeclaration
from agui_core.tools import ToolError, Toolset
from agui_core.tools.outcomes import ANSWER

__all__ = ["calculate_expression", "decide", "get_stock_price", "search_information", "toolset"]

toolset = Toolset()

_PRICES = {"AAPL": "178.15", "GOOG": "139.10", "MSFT": "411.22"}
_FACTS = (
    "AG-UI is an event protocol between agents and applications.",
    "A tool call streams as TOOL_CALL_START, TOOL_CALL_ARGS and TOOL_CALL_END, and TOOL_CALL_RESULT answers it.",
    "An interrupt ends a run with questions, which the resume entries of the next run input answer.",
    "A share's gain is its price now minus its price when it was bought.",
)
_COMMON = frozenset(
    {"a", "an", "and", "do", "does", "for", "how", "in", "is", "it", "of", "the", "to", "what", "which"}
)

# --- tools --------------------------------------------------------------------------------------------------------


@toolset.tool
def search_information(query: Annotated[str, Meta(description="What to look for.", max_length=200)]) -> str:
    """Search a small collection of facts."""
    wanted = _words(query)
    best = max(_FACTS, key=lambda fact: len(wanted & _words(fact)))
    if not wanted & _words(best):
        raise ToolError("nothing was found")
    return best


@toolset.tool
def get_stock_price(symbol: Annotated[str, Meta(description="Such as AAPL.", max_length=10)]) -> dict[str, str]:
    """Get the price of one share, in dollars."""
    price = _PRICES.get(symbol.upper())
    if price is None:
        raise ToolError(f"there is no price for {symbol!a}, only for {', '.join(_PRICES)}")
    return {"symbol": symbol.upper(), "price": price}


@toolset.tool
def calculate_expression(
    expression: Annotated[str, Meta(description="Numbers, + - * / and parentheses.", max_length=200)],
) -> str:
    """Calculate with decimal numbers."""
    # No product or sum of numbers in 200 characters needs more digits, so only a division can be inexact.
    with localcontext(Context(prec=400)) as context:
        try:
            value = _Expression(expression).value()
        except ArithmeticError:
            raise ToolError("a division by zero has no value") from None
        if context.flags[Inexact]:
            value = Context(prec=28).plus(value).normalize()
    return f"{value:f}"


class _Expression:
    """Sums of products of numbers, signs and parentheses; one method per rank."""

    def __init__(self, text: str) -> None:
        self._tokens = re.findall(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+|\S", text)
        self._tokens.append("the end")
        self._at = 0

    def value(self) -> Decimal:
        value = self._sum()
        if self._at < len(self._tokens) - 1:
            self._refuse("an operator")
        return value

    def _sum(self) -> Decimal:
        value = self._product()
        while operator := self._take("+", "-"):
            other = self._product()
            value = value + other if operator == "+" else value - other
        return value

    def _product(self) -> Decimal:
        value = self._factor()
        while operator := self._take("*", "/"):
            other = self._factor()
            value = value * other if operator == "*" else value / other
        return value

    def _factor(self) -> Decimal:
        if sign := self._take("+", "-"):
            return self._factor() if sign == "+" else -self._factor()
        if self._take("("):
            value = self._sum()
            if not self._take(")"):
                self._refuse("a closing parenthesis")
            return value
        token = self._tokens[self._at]
        if not any(digit in token for digit in "0123456789"):
            self._refuse("a number")
        self._at += 1
        return Decimal(token)

    def _take(self, *tokens: str) -> str | None:
        token: str = self._tokens[self._at]
        if token not in tokens:
            return None
        self._at += 1
        return token

    def _refuse(self, expected: str) -> NoReturn:
        raise ToolError(f"the expression has {self._tokens[self._at]!a} where {expected} is expected")


# --- deciding -----------------------------------------------------------------------------------------------------

DemoStep: TypeAlias = str | dict[str, Any]
"""The answer, or a call."""

Plan: TypeAlias = Callable[[re.Match[str], list[str]], DemoStep]


def decide(messages: Iterable[Message], tools: Iterable[ToolDeclaration]) -> DemoStep:
    """The next call, or the answer, to the last user message, from the messages alone."""
    question = ""
    answers: list[ToolMessage] = []
    for message in messages:
        if isinstance(message, UserMessage):
            question, answers = message.content if isinstance(message.content, str) else "", []
        elif isinstance(message, ToolMessage):
            answers.append(message)
    for answer in answers:
        if answer.metadata is not UNSET and answer.metadata.get(ANSWER) != "ok":
            return f"I cannot say: {answer.content}"
    results = [str(answer.content) for answer in answers]
    for pattern, plan in _PLANS:
        match = pattern.search(question)
        if match is not None:
            return plan(match, results)
    return "Ask me about a gain, the price of a share, a calculation, or AG-UI."


def _gain(match: re.Match[str], results: list[str]) -> DemoStep:
    count, symbol, paid = match[1].replace(",", ""), match[2].upper(), match[3]
    if not results:
        return _call("get_stock_price", symbol=symbol)
    if len(results) == 1:
        price = json.loads(results[0])["price"]
        return _call("calculate_expression", expression=f"({price} - {paid}) * {count}")
    return f"The gain on {count} {symbol} shares bought at {paid} is {results[1]}."


def _price(match: re.Match[str], results: list[str]) -> DemoStep:
    symbol = match[1].upper()
    if not results:
        return _call("get_stock_price", symbol=symbol)
    return f"One {symbol} share costs {json.loads(results[0])['price']}."


def _calculation(match: re.Match[str], results: list[str]) -> DemoStep:
    expression = match[0].strip()
    return f"{expression} = {results[0]}" if results else _call("calculate_expression", expression=expression)


def _search(match: re.Match[str], results: list[str]) -> DemoStep:
    return results[0] if results else _call("search_information", query=match[0])


_PLANS: tuple[tuple[re.Pattern[str], Plan], ...] = (
    (
        re.compile(r"gain on ([0-9][0-9,]*) (\w+) shares? bought (?:at|for) \$?([0-9]+(?:\.[0-9]+)?)", re.IGNORECASE),
        _gain,
    ),
    (re.compile(r"\bprice of (?:a |one )?(\w+)", re.IGNORECASE), _price),
    (re.compile(r"[-+]*[(.0-9][(). 0-9]*[-+*/][-+*/(). 0-9]*"), _calculation),
    (re.compile(r"\S.*"), _search),
)


def _call(name: str, **arguments: str) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9_-]+", text.lower())) - _COMMON
