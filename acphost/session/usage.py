"""What a session uses: context, turn and session kept apart, over all restarts of its agent. Pure.

Agents report either what a turn has used or what they have used since they began; the latter is
turned into differences, and begins anew with each process (an epoch) and after what the traits say
makes the agent count from zero.
"""

from decimal import Decimal

import msgspec
from msgspec import Raw

from acphost.wire.acp import lenient
from acphost.wire.usage import (
    ContextSize,
    ContextUpdate,
    Cost,
    ModelUsage,
    Reported,
    RunUsage,
    SessionUsage,
)

_COUNTS = (
    "input_tokens", "output_tokens", "thought_tokens", "cached_read_tokens", "cached_write_tokens",
    "total_tokens",
)  # fmt: skip
_NOTHING = Reported()


class _Model(msgspec.Struct):
    tokens: int | None = None
    cost: dict[str, Decimal] = {}


class _Kept(msgspec.Struct, rename="camel", omit_defaults=True):
    """The row's JSON: what must be known again after a restart of the daemon."""

    total: Reported = _NOTHING
    cost: dict[str, Decimal] = {}
    last_run: Reported | None = None
    used: int | None = None
    size: int | None = None
    #: The process that counts now, and what it had counted when the last turn ended.
    epoch: str | None = None
    base: Reported = _NOTHING
    base_cost: Cost | None = None
    #: The session's tokens when this epoch began.
    carryover: int | None = None
    models: dict[str, _Model] = {}


class UsageLedger:
    """The accounts of one session."""

    def __init__(self, kept: bytes) -> None:
        self._kept = msgspec.json.decode(kept, type=_Kept)
        #: Cumulative cost, as the agent said last.
        self._cost: Cost | None = None
        #: What the turn at hand has used, where the agent tells as it goes.
        self._turn: Reported | None = None
        #: Something is known that is not in the row yet.
        self.is_news = False

    def encode(self) -> bytes:
        """As it is kept."""
        self.is_news = False
        return msgspec.json.encode(self._kept)

    # -- what is told -----------------------------------------------------------------------------

    def begin(self, epoch: str) -> None:
        """A turn begins with this process of the agent."""
        self._turn = None
        if epoch != self._kept.epoch:
            self._kept.epoch = epoch
            self._kept.carryover = self._kept.total.total
            self.is_news = True
            self.restart()

    def restart(self) -> None:
        """The agent counts from zero again."""
        self._kept.base, self._kept.base_cost, self._cost = _NOTHING, None, None

    def update(self, update: ContextUpdate) -> None:
        """The context as it is now; null or nothing of a member leaves what is known."""
        if update.used is not None:
            self._kept.used = update.used
        if update.size is not None:
            self._kept.size = update.size
        self._cost = update.cost or self._cost
        self.is_news = True

    def report(self, turn: Reported) -> None:
        """What the turn at hand has used so far."""
        self._turn = turn

    def end(
        self, answer: Reported | None, *, is_cumulative: bool, model: str | None
    ) -> bytes | None:
        """The turn is over; what it has used, to be kept with its run, if anything is known."""
        used = self._turn
        if used is None and answer is not None:
            used = self._since_base(answer) if is_cumulative else answer
        cost = self._cost_since_base()
        if used is not None and used.cost is None and cost is not None:
            used = msgspec.structs.replace(used, cost=cost)
        elif used is None and cost is not None:
            used = Reported(cost=cost)
        self._turn = None
        self._kept.last_run = used
        self.is_news = True
        if used is None:
            return None
        self._add(used, model)
        return msgspec.json.encode(used)

    def _since_base(self, answer: Reported) -> Reported:
        base, self._kept.base = self._kept.base, answer
        counts = [(getattr(answer, name), getattr(base, name)) for name in _COUNTS]
        if any(now is not None and before is not None and now < before for now, before in counts):
            return answer  # it counts from zero, whatever has made it do so
        differences = [None if now is None else now - (before or 0) for now, before in counts]
        return _of_counts(differences)

    def _cost_since_base(self) -> Cost | None:
        now, before = self._cost, self._kept.base_cost
        if now is None:
            return None
        self._kept.base_cost = now
        if before is None or before.currency != now.currency or now.amount < before.amount:
            return now
        return Cost(amount=now.amount - before.amount, currency=now.currency)

    def _add(self, used: Reported, model: str | None) -> None:
        kept = self._kept
        # Where an agent tells no total it is added up, and so is the sum.
        whole = _sum(kept.total.total, used.total)
        sums = [_sum(getattr(kept.total, name), getattr(used, name)) for name in _COUNTS]
        kept.total = msgspec.structs.replace(_of_counts(sums), total_tokens=whole)
        share = kept.models.setdefault(model or "", _Model())
        share.tokens = _sum(share.tokens, used.total)
        if used.cost is not None:
            for money in (kept.cost, share.cost):
                money[used.cost.currency] = (
                    money.get(used.cost.currency, Decimal(0)) + used.cost.amount
                )

    # -- what is shown ----------------------------------------------------------------------------

    @property
    def context(self) -> ContextSize:
        """As the agent said last."""
        return ContextSize(used=self._kept.used, size=self._kept.size)

    @property
    def session(self) -> SessionUsage:
        """All turns together."""
        total = self._kept.total
        return SessionUsage(
            tokens=total.total,
            cost=money(self._kept.cost),
            cache_hit=total.cached_read_tokens,
            carryover=self._kept.carryover,
            prompt=total.input_tokens,
            completion=total.output_tokens,
        )

    @property
    def turn(self) -> RunUsage:
        """The turn at hand, as far as the agent has told."""
        return run_usage(self._turn)

    @property
    def last_run(self) -> RunUsage:
        """The last turn that has ended."""
        return run_usage(self._kept.last_run)

    @property
    def models(self) -> list[ModelUsage]:
        """The share of each model."""
        return [
            ModelUsage(model=name or None, tokens=share.tokens, cost=money(share.cost))
            for name, share in self._kept.models.items()
        ]

    def told(self) -> dict[str, object]:
        """What the terminal event of a run says."""
        return {"run": self.last_run, "session": self.session, "context": self.context}


def run_usage(used: Reported | None) -> RunUsage:
    """The tokens of a turn, as clients read them."""
    if used is None:
        return RunUsage()
    cost = None if used.cost is None else money({used.cost.currency: used.cost.amount})
    return RunUsage(
        prompt=used.input_tokens,
        completion=used.output_tokens,
        reasoning=used.thought_tokens,
        cache=used.cached_read_tokens,
        total=used.total,
        cost=cost,
    )


def stored_run_usage(kept: bytes | None) -> RunUsage:
    """The same from a run's row."""
    return run_usage(None if kept is None else msgspec.json.decode(kept, type=Reported))


def read_context(update: Raw) -> ContextUpdate:
    """A `usage_update`, as far as it can be read."""
    try:
        return lenient(ContextUpdate, update)
    except msgspec.DecodeError:
        return ContextUpdate()


def money(amounts: dict[str, Decimal]) -> str | None:
    """Decimal text with its currency; None where nothing is known."""
    return " + ".join(f"{amount:f} {currency}" for currency, amount in amounts.items()) or None


def _of_counts(counts: list[int | None]) -> Reported:
    given, answer, thought, read, written, total = counts
    return Reported(
        input_tokens=given,
        output_tokens=answer,
        thought_tokens=thought,
        cached_read_tokens=read,
        cached_write_tokens=written,
        total_tokens=total,
    )


def _sum(known: int | None, more: int | None) -> int | None:
    return known if more is None else (known or 0) + more
