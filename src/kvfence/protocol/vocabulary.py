"""The two unions: everything that a core can be told, and everything that it can say."""

from kvfence.protocol.commands import (
    AskCut,
    DeliverToken,
    DestroyConnection,
    FinishRequest,
    GrantPage,
    PagesFreed,
    PostBatch,
    SendAbort,
    SendClose,
    SendClosed,
    SendEnded,
    SendLowestLive,
    SendPrefill,
    SendReserve,
    SendReserved,
    SendReserveRefused,
    SetTimer,
    StampPages,
    StartPrefill,
    StartRow,
    StopPosting,
    StopPrefill,
    StopRow,
    VerifySeals,
)
from kvfence.protocol.events import (
    Abort,
    AttemptEnded,
    ChunkComputed,
    ClientGone,
    Close,
    Closed,
    ConnectionDestroyed,
    Cut,
    CutUnknown,
    DrainRequested,
    ExecutorFailed,
    Expired,
    GuardRejected,
    Hello,
    LowestLive,
    PageSealed,
    PageWanted,
    PeerLost,
    Prefill,
    Reconnected,
    Reserve,
    Reserved,
    ReserveRefused,
    RowFinished,
    SealsRejected,
    SealsVerified,
    StepLaunched,
    StepRetired,
    Submitted,
    TailCopied,
    TokenMade,
    WriteCompleted,
    WriteFailed,
)

Event = (
    Hello
    | PeerLost
    | Cut
    | CutUnknown
    | Expired
    | DrainRequested
    | Submitted
    | ClientGone
    | Reserved
    | ReserveRefused
    | TokenMade
    | AttemptEnded
    | Reserve
    | Abort
    | Closed
    | SealsVerified
    | SealsRejected
    | GuardRejected
    | PageWanted
    | TailCopied
    | PageSealed
    | StepLaunched
    | StepRetired
    | RowFinished
    | Prefill
    | ChunkComputed
    | ExecutorFailed
    | WriteCompleted
    | WriteFailed
    | ConnectionDestroyed
    | Reconnected
    | Close
    | LowestLive
)

Command = (
    SetTimer
    | PagesFreed
    | SendReserve
    | SendPrefill
    | SendAbort
    | DeliverToken
    | FinishRequest
    | StampPages
    | SendReserved
    | SendReserveRefused
    | VerifySeals
    | StartRow
    | GrantPage
    | StopRow
    | SendClose
    | SendLowestLive
    | SendEnded
    | AskCut
    | StartPrefill
    | StopPrefill
    | PostBatch
    | StopPosting
    | SendClosed
    | DestroyConnection
)
