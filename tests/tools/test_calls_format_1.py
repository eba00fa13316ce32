"""Checkpoints of calls in format 1, as the version before wrote them: all is read, and no approval is taken over."""

from __future__ import annotations

from base64 import b64decode
from zlib import decompress

import pytest

from agui_core.errors import ResumeError
from agui_core.tools import Calls, Toolset
from support.call_streams import answers, call, feed, finished, kinds, run, started
from support.events import snapshot

pytestmark = pytest.mark.anyio

USER = {"id": "u", "role": "user", "content": "Pay."}
OLD = {
    "approved": (
        "eNplVM9rE0EU3tUG8SDW/0Dm4qVC0jbkx0nxIKIHD3qyZZnsvE0WNzPrzGxrCYEIIl6ENIqoiLTU2NhW68lzqBV6sD36N/gPSI/1vewm"
        "CuaQ7Htv3pvv+963uXr97o1rN2/fcdzh2YMzzugzdXz8+2fybHMJtAmVzA0MWBvKunn+wVgd+vbZNiyBtF5txYI5crFlU4KhIz8OBk0w"
        "htcx77hP1rasUpHn8yhK469/Yy8G7WWH07MqBumFFprm8NJ0P+I48/D0r48mqeERaSm7S2XPb3DNfYvwjqbw8q1/4mmM+1IJuv/WzStf"
        "Ym79hoeTNbfIJUUxWOZaEiEc31tbG/gqkdT9Gqfl3CPn/MkF58jBUXs7vpIkw6j57eord7/TYlpFwKqMGxMay6VlMywUmGjiA/G7RvRY"
        "9V4rTXNKr8TUEiTSp0mYmTxWW0zyJlVjvoIFrutJk+hiprXAeJPALbDqxWKbtduL7VzO2dtbfZHLfdtb7blur+ee9FwHH51u13Hcc+dc"
        "3NeDBKQP7wZBKEPTALFu1/W3p58zuT21LJFU54sGbhQpMc5s02qy4NE6H35CgtqCSFeGmQ0EuQtSYGqyl857y+ums2MSE6clJTubOsFl"
        "CuzRw26nm34GXJpl0CC6G1h+MYG3/7LFbAPRCG8kGUma9mOgMYi1sspH62SeZFWZRNEMA62VHgcJcUPdF3EftE+dxKQixYSLaP61H+Zx"
        "M1hKzbgc2oZKrKfBJJHNiu3usI8CWNg/1WpPTNPrOoMaLkVwvfL4QwpzXb83MZfDzUzh4SCU9IqAcDaMgU4/CtHNnT48tJp/d9+0WKB0"
        "k+NFhRlmAJBQceY/CVQQkFhkEU2QUoMY5II/kVL3vSRGlKgV+EoLQwc5fY33PLElvVqInVXz2E+MyJcxqrrEo8vIOVa0NzyI+gp8w0eT"
        "RnW63uoEUGsRkhPQn2aseOqfceRz9FwUUUfAIwMITIT4T4DTWK04XwnyouzPlfLlcnk2qBRma0EpEODP87mKKJX8IO9XCkVeCIL5OVEs"
        "VmZrUBb5/GyJF0SA0GpQT+R4NM5OvUSkMUCtdQhZgENDsiHpmx8JZrM+AqnxoEhtkQVeoFUzZdH+A1wL6b0="
    ),
    "denied": (
        "eNplVMuOG0UU7YZ4GSX8ASoWbAbJnhnjxwqUBUJhkQWIBYla5a7bdivtqqaqeoaRZcmREGITyWMiRBSEZjRxxuQtIZGtNZlIWZDZ8Q9I"
        "/AC7cK7bdpDohd33Wfece6o//uSLTy9dvvJ5ED778MsbweI5989vf773983jHbIuNboyc+R9qrvuh3vO2zT2Nx/QDmkfdfY8ubMQJcea"
        "HKf88XLWJ+dkF/4g/O7gvjcmi2KZZaX9+xs7yslGy+Qy1+Sko9RT3716/+I0k+j56u2/fnVFBynas/cJh6O4J62MPcY7O4fD7//Hvgh7"
        "qo3i8z+7/NHTXPq4F6GzlR5Yyilmu9JqBoT2k4ODWWwKzdW30a0SngUXXr8TnAVodfIwNpppWBT/vP9TeDoaCGsyEm0hnUudl9qLDZEq"
        "OPp4YXyXGJ5ofzUo3ZLdezmXJIWOuRM869f2QGjZ52gu9xCQtlv0GS48g6tC9nm4q6L9bn0ohsNrw0olODnZv1WpPD/Zn4ThZBK+noQB"
        "XoPxOAjC8+dD7OvrgnRMv8ySVKeuR+rQH9rn3z9e0h2ZXQ1Qo6eWpDPMxMrzgFezNG4cyvkjALSeVLkyeI4w5BPSCq71XkZ3vey60UNX"
        "uLwMGT06tgWWqVBj5+PRuHxmUrtdsqTGRwjfWo93+uNA+B6mUdGCMqa0rIdhYeTWeBNDOktNirYusmxDkLXGroyCsYH3a9gH79MWObPI"
        "Ns/FMN/ID35sBqFSjLup75nCR5ZckfllcDieT0GAp9O3BsO1aCbjYNbBUpS0e9/eK8c8tHddLvX8eMnwfJZqviKkgiPnaDTNUqh5NKVv"
        "vJUvwjsDkRjblziotiEcEQDVN/5HgUkSJoslYnmkUiAOWPCXGXM9KnJMCa4oNlY5TpT8s9rzWpZ8tTC7aFdRz4hYlzlY3ZHZB8CcG94b"
        "EsGvwg1fdFrE+fhEZo5AtkpZChCoW1FeCgjNtBFMJUSXZesSTKZSfArQTnTq262kqprxVqPabDY3k1Zts5M0EkXxttxqqUYjTqpxq1aX"
        "tSTZ3lL1emuzQ01VrW42ZE0laN+hbqFXrdG7FBOjhgGybUpLA01T1iETXF0w5tcoYmmRqEpdLI0osaZfYhr+C4no6Pw="
    ),
    "held": (
        "eNq1VL1v00AUt8uHIiFEB/4AdAwsARWxIE+gDqgqAwNMtLIu9ktiYd+Zu3NLFVkKCCGWSmlgAAmhRjQkfDMxR6VIDDT/A2KAnR14z+ek"
        "CBYWLCX2+7j38Xu/d+cvXFmYX7x02XG/fj7+3SmeA6/nzhzdtz5YAaUjKSpDDcZEoqHvPdVGRYFZfwErIIxfWzOgxy4eGQjQ5PLp4zAB"
        "rXkD9Y57Z/O5kTL2Ax7HVn63J/spKL90tr4yBeFHBhK9e2K2H3OMubvv2zOd1dBFGNK+IbMfNLnigcHyxvsx+fPf5FmU+0KGlP/i4rm3"
        "KTdB08fIihvsxVYxXOVKUEMYvru5OQxkJuj0w4OOU3HHzpEf687YwVDbLwMpCIbi8KONB+7ObospGQPzGNc60oYLw6osClGR4Af1N0/t"
        "Me9qy6o5qddSOlLPRECRUDP99FpM8ISssZTX/CxFI1eNLKGWUdvKWZ5Xy1i1f42lQYR/BlrC6paYd2yJ3VhiFHU5r1Sc7e3u/Url/Xbx"
        "t9F13Xtd92fXdfCra1+djuO4hw/NIA+uZyACeDysRyLSTQh7pqfe331djtGXqwLBar9VwLUkhCeaFzTyUrjV46NebfQKsVMGQssGVA7K"
        "/nu1Lar+Df7QOp1+e8vwhm6/1JlOrUmK9kBlSJlQ3+ypUafdsc+QC70KCsLOEzTfnxa787jFTBNrC/0CTBqcPY+CQiFV0sgACVoyn3ki"
        "i+MqA6WkmggZdYrTXcapE2tUlhK8JFNd1PQeyVFfzL/G0GxpvxqZpsyMr0BnsfnNIe+M+oiJgZ2ZVj6laLfjDGvIz5CrtdtPbbk9taVT"
        "LkaDEvfRMBK0kBA6T7SGdj+OcHfafbhhFP/gfmmxulQJx2Snq8gMwMbOVv+CQtbrBBqRSFFZe3QsyLScI1oQSBVqcuH0N5n7lP60wlg1"
        "8+bwFPWC+kikmTmJNwfwhGxVhvCGeI1MEA0jvC5QYoQDNDIsr85jDTnB8v+zYBpLmKKvImO54TTHyXIrr+ZZN9QkYHjITYEBb2SRj7DA"
        "qdLsMXmN5XtXwcJkcfEuMTglu52GtprhW0VAiVEIIYiI1zSouap1sjUSdxQ6hpZnpeDXlUxse/kv3d8nkA=="
    ),
    "entries": (
        "eNqVUj1vE0EQPZuIlvwCim1oLCHSRHLFR4GiUFCQKopOm7uxfcl599jZswmWpUNCKE0kK9AgIRQrcXwkgaSitiBIFNj8Df4FzNxHghRR"
        "cIWtt7P7Zt57c+/hytKD5cdPnMrmzc51J/vmFhefr0x3xh0wGGhVTRGsDVQTXx+iNYFnd46hA8q661sWcFahJ2MFyFd+fE/bgCibdO5U"
        "Xu0dWa1D15NhmOPPl9iNwLjF5fyujkC5gYU2Tm/Nj0JJnNNrvz5gvE5XlOXTUy67Xksa6VkabzZHzY/+wvOER0r73P/R8t2zSFqv5RKz"
        "kZa05FOkXWkUCyL63b291NOx4tdvq45TrcycG79vOzOHqL6ceFqxDdnjd4Psy00iU57GoDx4nzYCFWAL/KEdmq/bnwpNru4qepmcGZCo"
        "uV15csz6S/ARrTQW/NyU5BSUT+BCc3JgZROTE4wxyktaJWMTk1E+vhiaySDJpxqkUmEXDPiDfSq/OQ5Ykokj4j7/2RO2RXP49ErUhRU1"
        "kVMQMAQio632KJkiclFXcRjWBBFoU4KYVYn66lpNXHAj4Z7IeAImzaRyhzJm0a8V9Y1/1ImOlbE/l8uRt8n3pBvYlo6tawDj0HKlP5iM"
        "yDYL59Ve/yLM3YGTrlOSvjRbLw9zfUNzgJFUk3ERyiQNFK8u+M4+IiSjMKAtS0bwzBr5rXK/JxratCV1uVMTCECzLtSueKcbDTZa1Hvk"
        "Xn1VRHJL8HXl01+o9aYbR2Ktz3o9bXxS0yOQ51MAmsEEwICM45/S0aXSSxYYIwcEqMMOMDc1CrXMGsuIQuPTujUx9Ily4yrPxv/wNGSI"
        "RERMPngBrxr7sJAJs0WZMzE0uF8GlAG3YXQ7X5P+H3e1qYg="
    ),
    "sent": (
        "eNqtUkFrE1EQ3sTe7W94Fy8BsQhCTooHKfXgwZ6KLK+7k2br5r31zdvGGgIriHgphuhFUGlo06xttT15DlrBg413b978Fzqzb9MKpQfB"
        "PSR8b2a+me+buXFrcf7mwp27XuX5j6s/veKb6V97tHi8MVoDg5FW1RzB2kit4IsdtCYK7MYerIGy/vK6BZxUqGSkADnl29e8BYhyhd69"
        "ytPNXat17Acyjh3+eIr9BIxfJrtcnYDyIwstPL40O4wlcR5f+PUO02VKUZZfDzjsB01pZGBpvMkMNd/9C88SHiodcv/bC9cPE2mDpk/M"
        "RlrS4qbI29IoFkT0/c3NPNCp4upXVc+rVibexd+XvYlHVJ/2A63YhqL4da/4nElkyoMUVABv80akImxCOLAD8/nZh1KTr9uKKrNDAxI1"
        "t5u+7LH+KXiPVhoLoTMlOwAVEjjRnG1buYLZPqaYuJBW2cikZFSIjwdm3MvcVL1cKmyDgbC3ReGXexFLMmlC3EffO8I2aY6QqkRdWFET"
        "joKAIZAYbXVAmylXLuoqjeOaIAJtpiBlVaK+dK8mTriRcEcUPBGTFlK5w3TNolsr46vnxImOlbE/p8fh2rg7aUe2qVPrG8A0thzp9sZD"
        "ss3CUbXTPVlmv+fly7TJUJr1JztO38BsYyLVeFQuZZxHik8XQm8LEbJhHNGVZUN4aI38UnnTEQ1tWpK6XKkJBKBZ52pnvNONBhst6h1y"
        "r74kErkuOF2F9Bdrfd9PE0Hzm7nzo112I9AmJK0dAm57JaAJTQQMyFb+mfo9P3Wa5afI6wPU8RowNzWKtSzGkgmtlF/r1qTQJcrVszyr"
        "/8LTkDESETGFEER8iOzSXCHMuja8MENzh//lKEouv2F0qzjT7h80+8fp"
    ),
    "refused": (
        "eNp1Us9rE0EU3hgvgtj+DXMRIRfrrSdFRKSiEuyplGW6+9KsbmbWN28bQwisIOKlEKoXQaShTbO21fbkOWgFDzZXQbzr2X9A3+xsW0E6"
        "l93v/Zrv+95cuzl/6/rcvfte5dK3qXNecao/vv88+L06WgE0kVbV3ABRpJbNiy1DGAW0ugMroMhf6hCYSYVbRgqMLfn6JW+BMXKZ417l"
        "2fo2aR37gYxjhz+cYD8B9MtiV6sTUH5E0DKHF6eHseSZh9Vfb026xCWKbHTPpv2gKVEGxPQmZ/ny7X/wNOOh0qG9//bc1f1EUtD0eTJK"
        "Yi2ORd6WqKwgHr+2vp4HOlW2+1WVxVcm3tSf897E41EfdwOtrA1F8+t+cZxJbMqjFFQAb7YaMoohHNAAPz1/XyrydVtxX7aPII22lx1F"
        "dqz6I/DOkESC0FmS7YEKGRwrzjZJLpts16QmcSmtshGmbFNongxw3M8cp34ulWkDQtjf4PTLktPBXldQkymE3CBmBYmacN0MkEGCmnTA"
        "Kyl3LWZVGsc1AYgaxSx3dxLg2vr8Hf9GvX63zj2lQo4qLXo1kTq0sFgTkbUR04SMw5a0lX6ydRd3D6AdUVOn5COYNCab6fXHQ3aE4OBM"
        "t3e8pbW+ly/xikKJnadbjv8AN00i1XhUshnnkbJvEkJvwxjIhnHEzycbwmNC+blyoSsaGluSb7lcEwaAlV6p/eeNbjSsh1Y4q18QiewI"
        "W65C/sRaP/TTRDB/nDk9y44gBBpD1tpl4BZTAmaIEZQghCCyO7WsZopB/NOQsQHrEHIhM1noioJeZFdXvCXL9chP9r/MPzglv3g8y2+g"
        "bhV77/0FQU6HkQ=="
    ),
    "begun": (
        "eNplVE1rG1cUnUmjZWi66bq8TTcuSLYVfaxaAg0hXXTRbtqE4WneHWnI6L3pe2/sGCFQoZRuArIaSgOh2DiK1Xw0oYWsheNCF41/R/9F"
        "eq5mrBSqhTT3+9xzz+iTa19ev3rj8y+CcHblqwvB6lML/vj0/d/vHu+QdanRtYUj71Pddz8+ct6msb/7hHZI+6i358mdhSg51uQ45e+/"
        "FkNyTvbhD8LvDx57Y7IolllW2i/f2lFONqqSy1yTk45ST0P3+sPL80yi5+t3/vnVFT2kaM/e5xyO4oG0MvaAd3YRwx//x74Me66N4vmf"
        "3fj4RS59PIjQ2UqPXUoUi11pNS+E9rODg0VsCs3V99GtFp4F7755LzgL0OrkaWw007AqfrD/c3g6GQlrMhJdIZ1LnZfaiw2RKjiGeOD9"
        "rvJ6ovv1qHRLdu/lXJIUOuZO8KwfuyOh5ZCjudxDQNp+MeR14RndFHLI4G6K7gfNsRiPb41rteDkZP9erfbqZH8WhrNZ+GYWBngMptMg"
        "CC9dCnGvbwrSMf2ySFKdugGpQ39oX/3wW0V3ZHY1lpq8sCSdYSbOPU/4NJXx7aFcPsOC1pMqTwbPEUA+J63gWt9l8tDLvps8dYXLy5DR"
        "k2Nb4JgKNXY5nUzLz0Jqt0uW1PQI4XtreKc/jYQfAI2KVpQxpWU9DAsjt8abGNKpNCm6usiyDUHWGntuFLwbeL+Fe/A9bZEzi2wzLl7z"
        "rfzgx2UQKsW4m/qBKXxkyRWZr4Lj6XIOAjydXhiN16KZTYNFD0dR0u5996iEeWgfulzq5XHF8HKRan5FSAVHztFknqVQ82ROd7yVf4ZH"
        "I5EYO5QY1NgQjggLNTf+R4FJEiaLJWIZUikQh13wkxlzOypyoARXFBurHCdK/jq/81qW/GoBu+jWUc8bsS5zsLojs4+wc274bkgEvwpv"
        "+KrTKs7jvS0IXKuUlQB9loNWwhTdK6v5rCP0zDBYMKdQX5ZxbSIzR0hRKf4TkC56ze1OUlfteKtVb7fbm0mnsdlLWomieFtudVSrFSf1"
        "uNNoykaSbG+pZrOz2aO2qtc3W7KhErTvUb/QJawxWpeiYlAwQLpNqTLQM2U9MtH1FXO+QsQYLRJVqY/KiBJrhqWcxv8C4cjpYA=="
    ),
}
"""Compressed bytes. In all of them run `r` was offered `pay`, `send` and `look_up` or a part of these.

`approved`, `denied`: `pay` 5, decided on. `begun`: the same, approved with 6 in place of 5, and about to run.
`held`: `look_up` is going on, `send` is answered and has to wait for it. `entries`: interrupts `i` (yes) and `j` (no).
`sent`: the same, and the next input is out. `refused`: the same, and an error came in place of its run.
"""


class Desk:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.tools = Toolset()
        self.tools.tool(name="pay", effects=True)(self.pay)
        self.tools.tool(name="send", effects=True, approval="never")(self.send)
        self.tools.tool(name="look_up")(lambda: "found")

    async def pay(self, amount: int) -> str:
        self.done.append(f"pay {amount}")
        return "paid"

    async def send(self, to: str) -> str:
        self.done.append(f"send {to}")
        return "sent again"

    def old(self, name: str) -> Calls:
        return Calls.restore(decompress(b64decode(OLD[name])), self.tools)

    def again(self, calls: Calls) -> Calls:
        return Calls.restore(calls.checkpoint(), self.tools)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize("name", ["approved", "denied"])
@pytest.mark.parametrize("twice", [False, True])
async def test_a_decision_has_to_be_said_again(desk: Desk, name: str, twice: bool) -> None:
    calls = desk.old(name)
    if twice:
        calls = desk.again(calls)
    assert calls.state("a") == "approval-requested"
    assert await calls.answer() == ()
    assert desk.done == []
    calls.approve(calls.request("a"))
    await calls.answer()
    assert desk.done == ["pay 5"]


async def test_an_approval_counts_for_nothing_else(desk: Desk) -> None:
    calls = desk.old("approved")
    feed(calls.reducer, started("r2"), snapshot(USER), call("a", "pay", '{"amount": 500}'), finished("r2"))
    await calls.answer()
    assert desk.done == []
    assert calls.state("a") == "approval-requested"


@pytest.mark.parametrize("twice", [False, True])
async def test_what_was_begun_is_not_run_again(desk: Desk, twice: bool) -> None:
    calls = desk.old("begun")
    if twice:
        calls = desk.again(calls)
    assert calls.waiting().approver == ()
    await calls.answer()
    assert desk.done == []
    assert kinds(calls) == {"a": "cancelled"}


@pytest.mark.parametrize("amount", [5, 6])
async def test_what_was_begun_is_known_by_the_edited_arguments_too(desk: Desk, amount: int) -> None:
    calls = desk.old("begun")
    feed(calls.reducer, started("r2"), snapshot(USER), call("a", "pay", f'{{"amount": {amount}}}'), finished("r2"))
    assert calls.waiting().approver == ()
    await calls.answer()
    assert desk.done == []
    assert kinds(calls) == {"a": "cancelled"}


async def test_an_answer_that_was_not_yet_added_is_added(desk: Desk) -> None:
    calls = desk.old("held")
    await calls.answer()
    assert {id: answer.content for id, answer in answers(calls).items()} == {"a": "found", "b": "sent"}
    assert desk.done == []


async def test_an_answer_that_was_not_yet_added_is_for_its_call_alone(desk: Desk) -> None:
    calls = desk.old("held")
    feed(calls.reducer, started("r2"), snapshot(USER), call("b", "send", '{"to": "y"}'), finished("r2"))
    await calls.answer()
    assert desk.done == ["send y"]
    assert answers(calls)["b"].content == "sent again"


async def test_a_call_whose_held_answer_went_away_is_not_run_again(desk: Desk) -> None:
    calls = desk.old("held")
    feed(calls.reducer, started("r2"), snapshot(USER), finished("r2"))
    calls.waiting()
    calls.next_input(run_id="r3")
    feed(calls.reducer, run("r3", call("b", "send", '{"to": "x"}')))
    await calls.answer()
    assert desk.done == []
    assert kinds(calls) == {"b": "cancelled"}


@pytest.mark.parametrize("name", ["entries", "sent"])
def test_answers_to_interrupts_go_out(desk: Desk, name: str) -> None:
    run_input = desk.old(name).next_input(run_id="r3")
    sent = {entry.interrupt_id: entry.payload for entry in run_input.resume or ()}
    assert sent == {"i": {"approved": True}, "j": {"approved": False}}


def test_answers_that_were_sent_are_used_up_by_the_run(desk: Desk) -> None:
    calls = desk.old("sent")
    feed(calls.reducer, run("r2"))
    assert not calls.next_input(run_id="r3").resume


def test_run_ids_that_went_out_stay_used(desk: Desk) -> None:
    with pytest.raises(ValueError, match="r2"):
        desk.old("sent").next_input(run_id="r2")


def test_interrupts_of_a_resume_that_was_refused_stay_open(desk: Desk) -> None:
    calls = desk.old("refused")
    calls.renew()
    assert [each.id for each in calls.interrupts] == ["i", "j"]
    with pytest.raises(ResumeError):
        calls.next_input(run_id="r3")
