"""Notices by mail, through the one server that the operator has named."""

import asyncio
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import format_datetime

from betimes.config.mail import MailSettings
from betimes.dispatcher.message import Notice, event_id
from betimes.domain.notice import Sent
from betimes.store.audit import EventRow

PORTS = {"starttls": 587, "tls": 465, "none": 25}
AT_ONCE = 4
"""Mails under way from one process: each takes a thread."""
SUBJECT_LENGTH_MAX = 200


def mail_of(event: EventRow, notice: Notice, *, sender: str, recipient: str) -> EmailMessage:
    """The mail that tells of an event; a repetition has the same id."""
    message = EmailMessage()
    message["From"] = sender
    message["To"] = recipient
    message["Subject"] = f"[betimes] {notice.title}"[:SUBJECT_LENGTH_MAX]
    message["Date"] = format_datetime(event.created_at)
    message["Message-ID"] = f"<{event_id(event)}@{sender.rpartition('@')[2]}>"
    # So that nobody's absence note answers it (RFC 3834).
    message["Auto-Submitted"] = "auto-generated"
    message["X-Betimes-Event"] = event.type
    lines = [notice.title, "", notice.says, ""]
    lines += [f"{name}: {value}" for name, value in notice.facts.items()]
    lines += ["", f"severity: {notice.severity.name.lower()}", f"at: {notice.at}"]
    message.set_content("\n".join(lines))
    return message


class Mailer:
    """Sends mails, a few at once."""

    def __init__(self, settings: MailSettings) -> None:
        self._settings = settings
        self._room = asyncio.Semaphore(AT_ONCE)

    async def send(self, event: EventRow, notice: Notice, recipient: str) -> Sent:
        """One mail, and what the server said to it."""
        message = mail_of(event, notice, sender=self._settings.sender, recipient=recipient)
        async with self._room:
            return await asyncio.to_thread(self._deliver, message, recipient)

    def _deliver(self, message: EmailMessage, recipient: str) -> Sent:
        try:
            with self._connected() as server:
                server.send_message(message, self._settings.sender, [recipient])
        except smtplib.SMTPRecipientsRefused as refused:
            code, said = next(iter(refused.recipients.values()))
            return _refused(code, said)
        except smtplib.SMTPResponseException as refused:
            return _refused(refused.smtp_code, refused.smtp_error)
        except (smtplib.SMTPException, ssl.SSLError, OSError) as error:
            return Sent(ok=False, detail=f"the mail server: {error}")
        return Sent(ok=True, status=250, response={"accepted": recipient})

    def _connected(self) -> smtplib.SMTP:
        settings = self._settings
        host, port = settings.host or "", settings.port or PORTS[settings.security]
        seconds = settings.timeout.total_seconds()
        if settings.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                host, port, timeout=seconds, context=self._tls()
            )
        else:
            server = smtplib.SMTP(host, port, timeout=seconds)
        try:
            if settings.security == "starttls":
                server.starttls(context=self._tls())
            if settings.username is not None:
                server.login(settings.username, settings.password or "")
        except BaseException:
            server.close()
            raise
        return server

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._settings.authorities is not None:
            context.load_verify_locations(self._settings.authorities)
        return context


def _refused(code: int, said: bytes | str) -> Sent:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return Sent(ok=False, status=code, detail=f"the mail server answered {code}: {text[:300]}")
