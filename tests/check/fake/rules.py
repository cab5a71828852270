"""What a healthy server decides, one small method each, so that a fault can get exactly one of them wrong."""

from enum import Enum, unique


@unique
class Overlong(Enum):
    """What becomes of a prompt that does not fit."""

    REFUSE = "refuse"
    PLACEHOLDER = "placeholder"  # one token instead of it, and everybody goes on
    KEEP_TAIL = "keep tail"  # the head is dropped without a word
    KEEP_HEAD = "keep head"
    WAIT = "wait"  # for room that there will never be
    CRASH = "crash"


class Rules:
    """The healthy ones."""

    # ---- admission
    def overlong(self, max_tokens):
        """What is done with a prompt over the limit."""
        return Overlong.REFUSE

    def kept_tokens(self, limit):
        """How much of a prompt is kept where one is cut."""
        return limit // 2

    # ---- lifetime
    def pages_posted(self, number, pages, live):
        """How many of a prompt's pages are written before it is called written."""
        return pages

    def writer_stops(self):
        """Whether a cancelled request's prompt is written no further before its pages are given back."""
        return True

    def late_steps(self):
        """How many steps go on writing after their row's pages were given back."""
        return 0

    def takes_reference(self, *, is_expired):
        """Whether a hand-off that a client brings back is decoded from."""
        return not is_expired

    # ---- names and side channels
    def first_token_slot(self, number):
        """Where a request's first token waits for decode."""
        return number

    def key_of(self, number, client_id):
        """Under which name a request's pages are kept."""
        return number

    # ---- prefix pages
    def domain(self, tenant):
        """Who may share pages."""
        return tenant

    def says_cached(self):
        """Whether hits are counted in the answer."""
        return True

    def chains(self):
        """Whether a page's key covers what stands before it."""
        return True

    def key_bytes(self):
        """The length of a key."""
        return 16

    def compares_words(self):
        """Whether a hit compares the words, too."""
        return True

    def publishes_early(self):
        """Whether pages are shown before they are written."""
        return False

    def pins_match(self):
        """Whether what a match found stays until it is used."""
        return True

    # ---- lower tier
    def restores(self, number, rows, kept):
        """Which kept conversation is copied over a new request's pages: none, if nobody asked for one."""
        return

    # ---- steps
    def attended(self, slots, page_tokens):
        """How many slots a row reads, of those that it has written."""
        return slots

    def pads_over_page_zero(self):
        """Whether padding rows write to page 0, which is leased like the others."""
        return False

    def table_row(self, row, rows, left):
        """Whose block table a row reads. `left`: how many rows have left this batch."""
        return row

    def sampled_row(self, row, rows):
        """Whose token a row is given."""
        return row

    def limit_row(self, row, rows):
        """Whose max_tokens ends a row."""
        return row

    def garbles(self, rows):
        """Whether a step over so many rows computes something else."""
        return False

    # ---- answers
    def addressee(self, number, live):
        """Who gets a token."""
        return number

    def keeps_rest(self):
        """Whether what a client who left did not read waits for the next one on that connection."""
        return False
