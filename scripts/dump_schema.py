"""Write src/betimes/store/schema.sql: the schema as the migrations make it on a fresh server."""

import sys
import tempfile
from pathlib import Path

from betimes.embedded import find_binaries
from betimes.testing.postgres import TEMPLATE, postgres_kit
from betimes.testing.schema import dump

TARGET = Path(__file__).resolve().parent.parent / "src" / "betimes" / "store" / "schema.sql"


def main() -> int:
    """Migrate a throw-away server and write down what it has become."""
    with tempfile.TemporaryDirectory(prefix="betimes-schema-") as folder:
        place = Path(folder)
        place.chmod(0o711)
        with postgres_kit(place / "server") as server:
            TARGET.write_text(dump(find_binaries(None), server.dsn(TEMPLATE)), encoding="utf-8")
    print(f"wrote {TARGET.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
