"""A process that buys something, to be killed: `python tx_buyer.py DSN commit|hang LIBRARY`.

It says what it has done on stdout and then waits for its end.
"""

import asyncio
import signal
import sys

from betimes import App

app = App(name="buyer")


@app.task
def send_receipt(order: int) -> None:
    """Never called here."""


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def buy(dsn: str, *, commits: bool) -> None:
    import psycopg  # noqa: PLC0415 -- one of two

    with psycopg.connect(dsn) as connection:
        run = app.tx(connection).enqueue(send_receipt, 1)
        if commits:
            connection.commit()
        say(run.id)
        signal.pause()


async def buy_awaited(dsn: str, *, commits: bool) -> None:
    import asyncpg  # noqa: PLC0415 -- one of two

    connection = await asyncpg.connect(dsn)
    transaction = connection.transaction()
    await transaction.start()
    run = await app.tx(connection).aenqueue(send_receipt, 1)
    if commits:
        await transaction.commit()
    say(run.id)
    await asyncio.Event().wait()


if __name__ == "__main__":
    address, ending, library = sys.argv[1:]
    if library == "psycopg":
        buy(address, commits=ending == "commit")
    else:
        asyncio.run(buy_awaited(address, commits=ending == "commit"))
