---------------------------- MODULE Transfer ----------------------------
(* The transfer protocol of kvfence, written from the design and not from the cores.

   It is a projection: the ledger of the decode node, the one-sided writes in flight, the control
   messages in flight, and what each role remembers of each lease and request. Every action is one
   atomic step of the world: a role that takes a message says all its answers in the same step.
   The comments name the sentence of the design that an action comes from ("4.1.3" is section 4.1,
   item 3; "law 4" is section 3). Where the design leaves something open the comment says "open";
   docs/twin.md lists those places, the variables and their encoding.

   An epoch counts the leases of a page, so a reference (page, epoch) is named here by the page and the lease
   that held it then: no number grows without need, and "still the same epoch" is "still the same owner".

   What it leaves out: token ids, seals as bytes, sampling, prefix sharing. *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Requests,    \* how many requests are submitted (numbered from 1)
    Attempts,    \* how many attempts a request can need here (a bound that no scope reaches past)
    Pages,       \* pages of the decode node (numbered from 0)
    Usable,      \* those of them that admission counts on
    Remote,      \* pages of a prompt, all written by the prefill node; the last one is partly filled
    Sources,     \* pages of the prefill node
    Retries,     \* recomputes after a node was lost, when nothing was streamed
    Abort,       \* the client of a request may leave at any moment
    LeaseTimer,  \* the lease timer of decode may fire at any moment
    QueueTimer,  \* the queue timer of the router may fire at any moment
    Crash,       \* the prefill node may die at any moment, and is found out at any later one
    Mutant       \* "none", or which sentence of the design is broken on purpose

None == 0
Rs == 1..Requests
Ps == 0..(Pages - 1)
Ls == 1..(Requests * Attempts)

VARIABLES
    ledger,      \* page -> [state, owner]                              (section 2: page states)
    content,     \* page -> the lease whose bytes lie in it, None under a stamp
    flights,     \* {<<lease, ordinal, page>>}: posted, not landed
    wires,       \* ordered pair of peers -> FIFO of messages
    router,      \* request -> what the router holds of it              (law 5: one field for its state)
    queue,       \* requests that wait for room, first in first out     (section 13: limits)
    full,        \* nodes that have said "not now" and have not been better since: "p", "d"
    known,       \* the router takes the prefill node for alive
    alive,       \* the prefill node is alive
    reach,       \* what decode holds of the prefill node: "writing", "cutting" or "cut" (section 2: cut)
    writer,      \* lease -> what the prefill node holds of it
    said,        \* lease -> what the prefill node has said when it closed it, "" for nothing
    floor,       \* the prefill node refuses every lease below
    decode,      \* lease -> what the decode node holds of it
    next,        \* the next sequence number
    free,        \* FREE pages; the first ones are leased next
    rows,        \* leases that decode answers, in the order in which they started
    step         \* the rows of the decode step that was launched and has not retired

vars == <<ledger, content, flights, wires, router, queue, full, known, alive, reach, writer, said, floor,
          decode, next, free, rows, step>>

Pairs == {"rd", "dr", "rp", "dp", "pd"}
NoLease == [state |-> "absent", attempt |-> <<>>, pages |-> <<>>, tail |-> None,
            quiet |-> FALSE, looks |-> FALSE]
New == [state |-> "new", number |-> 0, writes |-> FALSE, overdue |-> FALSE, retries |-> 0]
Over == [New EXCEPT !.state = "ended"]       \* nothing of its attempts is left
NoWriter == [state |-> "absent", attempt |-> <<>>, targets |-> <<>>, open |-> FALSE, busy |-> FALSE]

Init ==
    /\ ledger = [p \in Ps |-> [state |-> "free", owner |-> None]]
    /\ content = [p \in Ps |-> None]
    /\ flights = {}
    /\ wires = [w \in Pairs |-> <<>>]
    /\ router = [r \in Rs |-> New]
    /\ queue = <<>>
    /\ full = {}
    /\ known = TRUE
    /\ alive = TRUE
    /\ reach = "writing"
    /\ writer = [l \in Ls |-> NoWriter]
    /\ said = [l \in Ls |-> ""]
    /\ floor = 1
    /\ decode = [l \in Ls |-> NoLease]
    /\ next = 1
    /\ free = [i \in 1..Pages |-> i - 1]
    /\ rows = <<>>
    /\ step = <<>>

RouterVars == <<router, queue, full, known>>
WriterVars == <<writer, said, floor, alive>>
DecodeVars == <<ledger, content, decode, next, free, rows, step, reach>>

----------------------------------------------------------------------------
(* Wires: section 8, "the network"; FIFO by the ordered pair of peers, nothing lost. *)

Nothing == [v \in {} |-> <<>>]
On(w, m) == w :> <<m>>
Comes(w, kind) == wires[w] # <<>> /\ Head(wires[w])[1] = kind
Arg(w, i) == Head(wires[w])[i]
\* Take the head of a wire ("" for none) and append what is said to others, in one step. What is said to the
\* dead is lost.
Exchange(w, says) == wires' = [v \in Pairs |->
    (IF v = w THEN Tail(wires[v]) ELSE wires[v])
    \o (IF v \in DOMAIN says /\ (alive \/ v \notin {"rp", "dp"}) THEN says[v] ELSE <<>>)]
Merge(a, b) == [v \in DOMAIN a \cup DOMAIN b |->
    (IF v \in DOMAIN a THEN a[v] ELSE <<>>) \o (IF v \in DOMAIN b THEN b[v] ELSE <<>>)]

----------------------------------------------------------------------------
(* The router *)

\* 4.1.1: "pick a prefill and a decode node. Reserve(attempt, writer, tokens) to decode".
\* Section 13: what does not fit now waits first in first out. Open: the router estimates by the pages that
\* are outstanding on a node, an idle node is always asked, and one that has said "not now" is not asked again
\* before something got better there (an attempt ended on decode, a first token came from prefill).
Outstanding(rs, states) == Cardinality({r \in Rs : rs[r].state \in states}) * Remote
Asked(rs) == Outstanding(rs, {"reserving", "prefilling", "streaming", "closing"})
Written(rs) == Cardinality({r \in Rs : rs[r].writes}) * Remote
HasRoom(load, pages) == load = 0 \/ load + Remote <= pages
Fits(rs, isFull) == known /\ isFull = {} /\ HasRoom(Asked(rs), Usable) /\ HasRoom(Written(rs), Sources)

RECURSIVE Place(_, _, _, _)
Place(rs, q, isFull, says) ==
    IF q = <<>> \/ ~Fits(rs, isFull) THEN [router |-> rs, queue |-> q, says |-> says]
    ELSE LET r == Head(q) n == rs[r].number + 1 IN
         Place([rs EXCEPT ![r].state = "reserving", ![r].number = n, ![r].writes = TRUE], Tail(q), isFull,
               Merge(says, On("rd", <<"Reserve", r, n>>)))

RouterStep(w, rs, q, isFull, says) ==
    LET p == Place(rs, q, isFull, says) IN
    /\ router' = p.router
    /\ queue' = p.queue
    /\ full' = isFull
    /\ Exchange(w, p.says)
    /\ UNCHANGED <<DecodeVars, WriterVars, flights>>

\* Section 13: refused at once where no node of a needed role is known.
Submit(r) ==
    /\ router[r].state = "new"
    /\ IF known THEN RouterStep("", [router EXCEPT ![r].state = "queued"], Append(queue, r), full, Nothing)
       ELSE RouterStep("", [router EXCEPT ![r] = Over], queue, full, Nothing)
    /\ UNCHANGED known

IsCurrent(r, n) == router[r].number = n /\ router[r].state # "queued"

\* 4.1.7: "The router opens attempt n+1 only after it has sent the abort of n". Open: the abort goes to both
\* nodes, but with the first token the writer is done, and it goes to decode alone.
AbortOf(r) ==
    LET gone == <<"Abort", r, router[r].number>> IN
    IF router[r].writes THEN On("rd", gone) @@ On("rp", gone) ELSE On("rd", gone)
Requeued(r) == [router[r] EXCEPT !.state = "queued", !.writes = FALSE]
MayRetry(r) == router[r].state \in {"reserving", "prefilling"} /\ router[r].retries < Retries
Retried(r) == [Requeued(r) EXCEPT !.retries = @ + 1, !.overdue = FALSE]

\* Open: work for an attempt that is not alive is answered with its abort, said again.
Stray(r, n) == IF IsCurrent(r, n) THEN Nothing ELSE On("rd", <<"Abort", r, n>>)

\* 4.1.3: "Prefill(attempt, tokens, lease)". What was aborted meanwhile is left to its abort.
RouterReserved ==
    /\ Comes("dr", "Reserved")
    /\ LET r == Arg("dr", 2) n == Arg("dr", 3) IN
        IF IsCurrent(r, n) /\ router[r].state = "reserving"
        THEN RouterStep("dr", [router EXCEPT ![r].state = "prefilling"], queue, full,
                        On("rp", <<"Prefill", r, n, Arg("dr", 4), Arg("dr", 5)>>))
        ELSE RouterStep("dr", router, queue, full, Stray(r, n))
    /\ UNCHANGED known

\* 4.1.2 "or refuse"; section 13: "one that does not fit now waits", up to the deadline of its queue.
RouterRefused ==
    /\ Comes("dr", "ReserveRefused")
    /\ LET r == Arg("dr", 2) n == Arg("dr", 3)
           blamed == CASE Arg("dr", 4) # "stale" -> {"d"}
                       [] Arg("dr", 4) = "stale" /\ known -> {"p"}
                       [] OTHER -> {} IN
        CASE IsCurrent(r, n) /\ router[r].state = "reserving" /\ ~router[r].overdue ->
                RouterStep("dr", [router EXCEPT ![r] = Requeued(r)], <<r>> \o queue, full \cup blamed,
                           AbortOf(r))
          [] IsCurrent(r, n) /\ router[r].state = "reserving" /\ router[r].overdue ->
                RouterStep("dr", [router EXCEPT ![r] = Over], queue, full \cup blamed, Nothing)
          [] IsCurrent(r, n) /\ router[r].state = "closing" ->
                RouterStep("dr", [router EXCEPT ![r] = Over], queue, full, Nothing)
          [] OTHER -> RouterStep("dr", router, queue, full, Nothing)
    /\ UNCHANGED known

\* 4.1.7: "tokens carry their position and attempt; the router drops those of other attempts".
RouterToken ==
    /\ Comes("dr", "TokenMade")
    /\ LET r == Arg("dr", 2) n == Arg("dr", 3) IN
        IF IsCurrent(r, n) /\ router[r].state \in {"prefilling", "streaming"}
        THEN RouterStep("dr", [router EXCEPT ![r].state = "streaming", ![r].writes = FALSE], queue,
                        IF router[r].writes THEN full \ {"p"} ELSE full, Nothing)
        ELSE RouterStep("dr", router, queue, full, Stray(r, n))
    /\ UNCHANGED known

\* Law 11: "Every request ends for a stated reason". A prefill node that refused for now is asked later;
\* section 13: "one recompute when nothing was streamed".
RouterEnded ==
    /\ Comes("dr", "AttemptEnded")
    /\ LET r == Arg("dr", 2) n == Arg("dr", 3) why == Arg("dr", 4) better == full \ {"d"}
           notNow == why = "refused" /\ router[r].state = "prefilling" /\ ~router[r].overdue
           again == why = "peer_lost" /\ MayRetry(r) IN
        CASE ~IsCurrent(r, n) -> RouterStep("dr", router, queue, better, Nothing)
          [] IsCurrent(r, n) /\ notNow ->
                RouterStep("dr", [router EXCEPT ![r] = Requeued(r)], <<r>> \o queue,
                           better \cup (IF known THEN {"p"} ELSE {}), AbortOf(r))
          [] IsCurrent(r, n) /\ again ->
                RouterStep("dr", [router EXCEPT ![r] = Retried(r)], <<r>> \o queue, better, AbortOf(r))
          [] OTHER -> RouterStep("dr", [router EXCEPT ![r] = Over], queue, better, Nothing)
    /\ UNCHANGED known

\* 4.2: "Abort (client gone, deadline, operator) is legal in every state." Open: the request stays "closing"
\* until decode has said that its attempt ended.
ClientGone(r) ==
    /\ Abort
    /\ CASE router[r].state = "queued" ->
              RouterStep("", [router EXCEPT ![r] = Over], SelectSeq(queue, LAMBDA q : q # r), full, Nothing)
         [] router[r].state \in {"reserving", "prefilling", "streaming"} ->
              RouterStep("", [router EXCEPT ![r].state = "closing"], queue, full, AbortOf(r))
         [] OTHER -> FALSE
    /\ UNCHANGED known

\* Section 13: "waits in a bounded first-in-first-out queue with a deadline, then 503". While an attempt is
\* alive the deadline is only remembered.
QueueExpired(r) ==
    /\ QueueTimer /\ ~router[r].overdue
    /\ CASE router[r].state = "queued" ->
              RouterStep("", [router EXCEPT ![r] = Over], SelectSeq(queue, LAMBDA q : q # r), full, Nothing)
         [] router[r].state \in {"reserving", "prefilling", "streaming"} ->
              RouterStep("", [router EXCEPT ![r].overdue = TRUE], queue, full, Nothing)
         [] OTHER -> FALSE
    /\ UNCHANGED known

\* The router finds out that the prefill node is lost: what depends on it is aborted, then recomputed or
\* failed.
RECURSIVE Losing(_, _, _, _)
Losing(todo, rs, q, says) ==
    IF todo = {} THEN [router |-> rs, queue |-> q, says |-> says]
    ELSE LET r == CHOOSE r \in todo : \A o \in todo : r <= o IN
         IF MayRetry(r)
         THEN Losing(todo \ {r}, [rs EXCEPT ![r] = Retried(r)], <<r>> \o q, Merge(says, AbortOf(r)))
         ELSE Losing(todo \ {r}, [rs EXCEPT ![r].state = "closing"], q, Merge(says, AbortOf(r)))
RouterSuspects ==
    /\ ~alive /\ known
    /\ known' = FALSE
    /\ LET touched == {r \in Rs : router[r].state \in {"reserving", "prefilling"}}
           lost == Losing(touched, router, queue, Nothing) IN
        /\ router' = lost.router
        /\ queue' = lost.queue
        /\ full' = full \ {"p"}
        /\ Exchange("", lost.says)
    /\ UNCHANGED <<DecodeVars, WriterVars, flights>>

----------------------------------------------------------------------------
(* The prefill node *)

WriterStep(w, ws, saids, low, says) ==
    /\ writer' = ws
    /\ said' = saids
    /\ floor' = low
    /\ Exchange(w, says)
    /\ UNCHANGED <<RouterVars, DecodeVars, alive>>

\* 4.2: "Before a writer says Closed it records the lease as closed". Below the floor it keeps no record.
Recorded(l, outcome) == [said EXCEPT ![l] = IF l < floor THEN @ ELSE outcome]
Closing(l, outcome) == On("pd", <<"Closed", l, outcome>>)
Again(l) == IF said[l] = "" THEN Nothing ELSE Closing(l, said[l])

\* 4.1.4: "Its source pages are released only on local completion", and 4.2 on launched steps.
Settled(l, w) == IF w.state = "closing" /\ ~w.open /\ ~w.busy THEN NoWriter ELSE w
SourcesHeld == Cardinality({l \in Ls : writer[l].state # "absent"}) * Remote

\* 4.1.3: "Prefill leases its own pages for the whole prompt at once, or refuses".
\* 4.2: "refuses a Prefill for it that arrives later"; what was said once is said again.
WriterPrefill ==
    /\ Comes("rp", "Prefill")
    /\ LET l == Arg("rp", 4)
           isClosed == (l < floor \/ said[l] # "") /\ Mutant # "late_prefill" IN
        CASE isClosed -> WriterStep("rp", writer, said, floor, Again(l))
          [] ~isClosed /\ SourcesHeld + Remote > Sources ->
                WriterStep("rp", writer, Recorded(l, "refused"), floor, Closing(l, "refused"))
          [] OTHER ->
                WriterStep("rp", [writer EXCEPT ![l] = [NoWriter EXCEPT !.state = "computing",
                                    !.attempt = <<Arg("rp", 2), Arg("rp", 3)>>, !.targets = Arg("rp", 5)]],
                           said, floor, Nothing)
    /\ UNCHANGED flights

\* 4.1.4: "computes in chunks". A prompt of these scopes is one chunk. Open: one prompt at a time, first come
\* first computed.
ChunkLaunched ==
    LET ready == {l \in Ls : writer[l].state = "computing" /\ ~writer[l].busy} IN
    /\ ready # {} /\ \A l \in Ls : ~writer[l].busy
    /\ LET first == CHOOSE l \in ready : \A m \in ready : l <= m IN
        WriterStep("", [writer EXCEPT ![first].busy = TRUE], said, floor, Nothing)
    /\ UNCHANGED flights

\* 4.1.4: "seals each full page and writes it as soon as it is complete, in batches": one batch here. What was
\* given up while it was computed is not posted; its source pages come home now.
Posts(l) == {<<l, o, writer[l].targets[o]>> : o \in 1..Remote}
ChunkRetired(l) ==
    /\ writer[l].busy
    /\ IF writer[l].state = "computing"
       THEN /\ WriterStep("", [writer EXCEPT ![l].busy = FALSE, ![l].state = "sending", ![l].open = TRUE],
                          said, floor, Nothing)
            /\ flights' = flights \cup Posts(l)
       ELSE /\ WriterStep("", [writer EXCEPT ![l] = Settled(l, [@ EXCEPT !.busy = FALSE])],
                          said, floor, Nothing)
            /\ UNCHANGED flights

\* Section 6: a one-sided write; decode's processor sees nothing of it. Atomic by the page, in order.
Land(f) ==
    /\ f \in flights
    /\ \A g \in flights : g[1] = f[1] => g[2] >= f[2]
    /\ flights' = flights \ {f}
    /\ content' = [content EXCEPT ![f[3]] = f[1]]
    /\ UNCHANGED <<ledger, decode, next, free, rows, step, reach, wires, RouterVars, WriterVars>>

\* 4.1.5: "after the positive completion of every write: Closed(lease, done(manifest)), once".
\* One that was given up closes when its writes have come home (4.2: an abort never interrupts a write).
BatchCompleted(l) ==
    /\ alive /\ writer[l].open
    /\ \A f \in flights : f[1] # l
    /\ LET outcome == IF writer[l].state = "sending" THEN "done" ELSE "failed"
           isSaid == Mutant = "closed_before_quiet" /\ writer[l].state = "closing" IN
        WriterStep("", [writer EXCEPT ![l] = Settled(l, [@ EXCEPT !.open = FALSE, !.state = "closing"])],
                   IF isSaid THEN said ELSE Recorded(l, outcome), floor,
                   IF isSaid THEN Nothing ELSE Closing(l, outcome))
    /\ UNCHANGED flights

\* Gives a lease up: closed at once when no write is in flight, else when they have come home. A pass that
\* still computes it holds the source pages, and not the promise: it posts nothing.
GivenUp(w, l) ==
    LET isQuiet == ~writer[l].open \/ Mutant = "closed_before_quiet" IN
    WriterStep(w, [writer EXCEPT ![l] = Settled(l, [@ EXCEPT !.state = "closing"])],
               IF isQuiet THEN Recorded(l, "failed") ELSE said, floor,
               IF isQuiet THEN Closing(l, "failed") ELSE Nothing)

WriterAbort ==
    /\ Comes("rp", "Abort")
    /\ LET mine == {l \in Ls : /\ writer[l].state \in {"computing", "sending"}
                               /\ writer[l].attempt = <<Arg("rp", 2), Arg("rp", 3)>>} IN
        IF mine = {} THEN WriterStep("rp", writer, said, floor, Nothing)
        ELSE GivenUp("rp", CHOOSE l \in mine : TRUE)
    /\ UNCHANGED flights

\* 4.2: "the writer answers Closed(lease, outcome)".
WriterClose ==
    /\ Comes("dp", "Close")
    /\ LET l == Arg("dp", 2) IN
        CASE writer[l].state \in {"computing", "sending"} -> GivenUp("dp", l)
          [] writer[l].state = "closing" -> WriterStep("dp", writer, said, floor, Again(l))
          [] writer[l].state = "absent" /\ (l < floor \/ said[l] # "") ->
                WriterStep("dp", writer, said, floor, Again(l))
          [] OTHER -> WriterStep("dp", writer, Recorded(l, "failed"), floor, Closing(l, "failed"))
    /\ UNCHANGED flights

\* 4.2: "below it a writer refuses everything and forgets its records".
WriterLowest ==
    /\ Comes("dp", "LowestLive")
    /\ LET low == Arg("dp", 2) IN
        WriterStep("dp", writer, [l \in Ls |-> IF l < low THEN "" ELSE said[l]], low, Nothing)
    /\ UNCHANGED flights

\* Law 10 and section 6: it dies; what it had said arrives, what was said to it does not, and what it had
\* posted may land all the same, at any time or never.
WriterCrash ==
    /\ Crash /\ alive
    /\ alive' = FALSE
    /\ writer' = [l \in Ls |-> NoWriter]
    /\ said' = [l \in Ls |-> ""]
    /\ floor' = 1
    /\ wires' = [w \in Pairs |-> IF w \in {"rp", "dp"} THEN <<>> ELSE wires[w]]
    /\ UNCHANGED <<RouterVars, DecodeVars, flights>>

Vanish(l) ==
    LET gone == {f \in flights : f[1] = l} IN
    /\ ~alive /\ gone # {}
    /\ flights' = flights \ gone
    /\ UNCHANGED <<RouterVars, DecodeVars, WriterVars, wires>>

----------------------------------------------------------------------------
(* The decode node *)

Range(s) == {s[i] : i \in 1..Len(s)}
Held(d) == Append(d.pages, d.tail)

\* A step of the decode node that takes a message of wire w ("" for none). `d` are its own variables after it.
Now == [ledger |-> ledger, decode |-> decode, free |-> free, rows |-> rows, says |-> Nothing]
DecodeStep(w, d) ==
    /\ ledger' = d.ledger
    /\ decode' = d.decode
    /\ free' = d.free
    /\ rows' = d.rows
    /\ Exchange(w, d.says)
    /\ UNCHANGED <<RouterVars, WriterVars>>
Adding(d, says) == [d EXCEPT !.says = Merge(@, says)]

\* Law 11: "above a share of the pool, admission stops"; section 13: at 50 % quarantined.
Quarantined == Cardinality({p \in Ps : \E l \in Ls : /\ decode[l].state = "closing" /\ ~decode[l].quiet
                                                    /\ p \in Range(Held(decode[l]))})
Refusal ==
    CASE reach # "writing" -> "stale"
      [] reach = "writing" /\ Quarantined * 2 > Usable -> "quarantine"
      [] reach = "writing" /\ Quarantined * 2 <= Usable /\ Len(free) < Remote + 1 -> "busy"
      [] OTHER -> ""

\* 4.1.2: "lease pages, stamp each 'reserved, unwritten' -> Reserved(lease, tag key), or refuse".
\* 4.1.6: one page more, that no remote writer is given. Section 13: refused while there is no room.
DecodeReserve ==
    /\ Comes("rd", "Reserve")
    /\ LET r == Arg("rd", 2) n == Arg("rd", 3) need == Remote + 1 l == next IN
        IF Refusal # ""
        THEN /\ DecodeStep("rd", Adding(Now, On("dr", <<"ReserveRefused", r, n, Refusal>>)))
             /\ UNCHANGED <<content, next, step>>
        ELSE LET got == SubSeq(free, 1, need)
                 refs == SubSeq(got, 1, Remote)
                 lease == [NoLease EXCEPT !.state = "reserved", !.attempt = <<r, n>>, !.pages = refs,
                                            !.tail = got[need]]
                 pages == [p \in Ps |-> IF p \in Range(got) THEN [state |-> "reserved", owner |-> l]
                                          ELSE ledger[p]] IN
             /\ DecodeStep("rd", Adding([Now EXCEPT !.ledger = pages, !.decode[l] = lease,
                                                      !.free = SubSeq(free, need + 1, Len(free))],
                                        On("dr", <<"Reserved", r, n, l, refs>>)))
             /\ content' = [p \in Ps |-> IF p \in Range(got) THEN None ELSE content[p]]
             /\ next' = next + 1
             /\ UNCHANGED step
    /\ UNCHANGED <<flights, reach>>

\* 4.2: "Decode sends its writers the lowest sequence number not yet freed." Open: whenever it has risen.
Low(leases) ==
    LET live == {l \in Ls : leases[l].state # "absent"} IN
    IF live = {} THEN next ELSE CHOOSE l \in live : \A m \in live : l <= m
Told(before, d) ==
    IF Low(d.decode) > Low(before) /\ reach = "writing"
    THEN Adding(d, On("dp", <<"LowestLive", Low(d.decode)>>)) ELSE d

\* Law 4: closed by the writer, no launched step, no verification that reads the pages.
IsQuiet(lease, l, running) ==
    /\ lease.state = "closing"
    /\ lease.quiet \/ Mutant = "free_on_abort"
    /\ l \notin running \/ Mutant = "free_under_step"
    /\ ~lease.looks

\* Pages come home. Open: what is freed last is leased first, in the order of the lease.
Freeing(pages, d) ==
    [d EXCEPT !.free = pages \o @,
              !.ledger = [p \in Ps |-> IF p \in Range(pages)
                            THEN [state |-> "free", owner |-> None] ELSE @[p]]]

\* What follows for a lease whose record has become `lease`: home at once when it ended and is quiet, else
\* in quarantine (4.2: "pages go to CLOSING").
Settle(d, l, lease, running) ==
    IF IsQuiet(lease, l, running)
    THEN [Freeing(Held(lease), d) EXCEPT !.decode[l] = NoLease]
    ELSE [d EXCEPT !.decode[l] = lease,
                   !.ledger = [p \in Ps |-> IF lease.state = "closing" /\ p \in Range(Held(lease))
                                 THEN [@[p] EXCEPT !.state = "closing"] ELSE @[p]]]

\* 4.2: "Closing is pulled: while a lease is not closed [...] decode itself asks the writer Close(lease)".
\* Open: it asks as soon as the lease has ended for whatever reason, for then it has no owner any more.
Ended(d, l, lease, running, why) ==
    LET over == [d EXCEPT !.rows = SelectSeq(@, LAMBDA m : m # l)]
        said1 == Adding(over, On("dr", <<"AttemptEnded", lease.attempt[1], lease.attempt[2], why>>))
        said2 == IF lease.quiet \/ Mutant = "close_not_asked" THEN said1
                 ELSE Adding(said1, On("dp", <<"Close", l>>)) IN
    Told(d.decode, Settle(said2, l, [lease EXCEPT !.state = "closing"], running))

DecodeAbort ==
    /\ Comes("rd", "Abort")
    /\ LET mine == {l \in Ls : /\ decode[l].state \in {"reserved", "verifying", "running"}
                               /\ decode[l].attempt = <<Arg("rd", 2), Arg("rd", 3)>>} IN
        DecodeStep("rd", IF mine = {} THEN Now
                         ELSE LET l == CHOOSE l \in mine : TRUE IN
                              Ended(Now, l, decode[l], Range(step), "client_gone"))
    /\ UNCHANGED <<content, next, step, reach, flights>>

\* 4.1.6: "checks the manifest, verifies the seals, then starts". Law 5: "CLOSING alone has no missing rows".
DecodeClosed ==
    /\ Comes("pd", "Closed")
    /\ LET l == Arg("pd", 2) heard == [decode[l] EXCEPT !.quiet = TRUE]
           why == IF Arg("pd", 3) = "refused" THEN "refused" ELSE "transfer" IN
        DecodeStep("pd",
            CASE decode[l].state = "reserved" /\ Arg("pd", 3) = "done" ->
                    [Now EXCEPT !.decode[l] = [heard EXCEPT !.state = "verifying", !.looks = TRUE]]
              [] decode[l].state = "reserved" /\ Arg("pd", 3) # "done" ->
                    Ended(Now, l, heard, Range(step), why)
              [] decode[l].state = "closing" -> Told(decode, Settle(Now, l, heard, Range(step)))
              [] OTHER -> Now)
    /\ UNCHANGED <<content, next, step, reach, flights>>

\* Law 3 and 4.1.6: every seal verifies, then "the partly filled last page is copied into a page that no
\* remote writer was ever given", and the row starts with the writer's first token. The spare page is free.
Verified(l) ==
    /\ decode[l].looks
    /\ LET lease == [decode[l] EXCEPT !.looks = FALSE] IN
        IF lease.state = "verifying"
        THEN LET kept == SubSeq(lease.pages, 1, Remote - 1)
                 started == [lease EXCEPT !.state = "running", !.pages = kept]
                 sealed == [p \in Ps |->
                    CASE p = lease.tail -> [ledger[p] EXCEPT !.state = "open"]
                      [] p \in Range(Held(lease)) \ {lease.tail} -> [ledger[p] EXCEPT !.state = "sealed"]
                      [] OTHER -> ledger[p]]
                 begun == [Now EXCEPT !.ledger = sealed, !.decode[l] = started, !.rows = Append(@, l)] IN
             /\ \A o \in 1..Remote : content[lease.pages[o]] = l
             /\ DecodeStep("", Adding(Freeing(<<lease.pages[Remote]>>, begun),
                                      On("dr", <<"TokenMade", lease.attempt[1], lease.attempt[2]>>)))
             /\ content' = [content EXCEPT ![lease.tail] = l]
        ELSE /\ DecodeStep("", Told(decode, Settle(Now, l, lease, Range(step))))
             /\ UNCHANGED content
    /\ UNCHANGED <<next, step, reach, flights>>

\* Section 5: continuous batching; a step takes all rows.
StepLaunched ==
    /\ step = <<>> /\ rows # <<>>
    /\ step' = rows
    /\ DecodeStep("", Now)
    /\ UNCHANGED <<content, next, reach, flights>>

\* 4.2: pages of launched steps that have not retired stay in CLOSING until now: they come home first, then
\* the tokens of the rows that are left. The answers of these scopes have two tokens: the writer's, and that
\* of one step; so each row ends.
StepRetired ==
    /\ step # <<>>
    /\ LET Homes[i \in 0..Len(step)] ==
               IF i = 0 THEN Now
               ELSE IF decode[step[i]].state = "closing"
                    THEN Settle(Homes[i - 1], step[i], decode[step[i]], {})
                    ELSE Homes[i - 1]
           home == Told(decode, Homes[Len(step)])
           Ends[i \in 0..Len(step)] ==
               IF i = 0 THEN home
               ELSE LET lease == decode[step[i]] a == lease.attempt IN
                    IF lease.state = "running"
                    THEN Ended(Adding(Ends[i - 1], On("dr", <<"TokenMade", a[1], a[2]>>)),
                               step[i], lease, {}, "length")
                    ELSE Ends[i - 1] IN
        DecodeStep("", Ends[Len(step)])
    /\ step' = <<>>
    /\ UNCHANGED <<content, next, reach, flights>>

\* 4.2: "its deadline has fired"; law 4: time alone never frees a page.
LeaseExpired(l) ==
    /\ LeaseTimer /\ decode[l].state = "reserved"
    /\ DecodeStep("", Ended(Now, l, decode[l], Range(step), "deadline"))
    /\ UNCHANGED <<content, next, step, reach, flights>>

\* 4.2: "A lost writer incarnation is cut; only the cut frees." What it had closed goes on without it.
RECURSIVE Lose(_, _)
Lose(todo, d) ==
    IF todo = {} THEN d
    ELSE LET l == CHOOSE l \in todo : \A m \in todo : l <= m IN
         Lose(todo \ {l},
              Ended(d, l, [decode[l] EXCEPT !.quiet = (Mutant = "free_on_loss")], Range(step), "peer_lost"))
DecodeSuspects ==
    /\ ~alive /\ reach = "writing"
    /\ reach' = "cutting"
    /\ DecodeStep("", Lose({l \in Ls : decode[l].state = "reserved"}, Now))
    /\ UNCHANGED <<content, next, step, flights>>

\* Section 2, "cut": proof that the incarnation can no longer write here. Nothing of it lands from now on.
RECURSIVE Quieted(_, _)
Quieted(todo, d) ==
    IF todo = {} THEN d
    ELSE LET l == CHOOSE l \in todo : \A m \in todo : l <= m IN
         Quieted(todo \ {l}, Settle(d, l, [decode[l] EXCEPT !.quiet = TRUE], Range(step)))
CutDone ==
    /\ reach = "cutting"
    /\ reach' = "cut"
    /\ flights' = {}
    /\ DecodeStep("", Quieted({l \in Ls : decode[l].state = "closing"}, Now))
    /\ UNCHANGED <<content, next, step>>

----------------------------------------------------------------------------
Next ==
    \/ \E r \in Rs : Submit(r) \/ ClientGone(r) \/ QueueExpired(r)
    \/ RouterReserved \/ RouterRefused \/ RouterToken \/ RouterEnded
    \/ WriterPrefill \/ WriterAbort \/ WriterClose \/ WriterLowest
    \/ ChunkLaunched
    \/ \E l \in Ls : ChunkRetired(l) \/ BatchCompleted(l) \/ Verified(l) \/ LeaseExpired(l)
    \/ \E f \in flights : Land(f)
    \/ DecodeReserve \/ DecodeAbort \/ DecodeClosed
    \/ StepLaunched \/ StepRetired
    \/ WriterCrash \/ RouterSuspects \/ DecodeSuspects \/ CutDone
    \/ \E l \in Ls : Vanish(l)

----------------------------------------------------------------------------
(* The laws *)

\* Laws 1 and 2: a step reads pages that its lease owns, with bytes written under that lease.
NoForeignRead ==
    \A i \in 1..Len(step) : LET l == step[i] lease == decode[l] IN
        IF lease.state = "absent" THEN FALSE
        ELSE \A p \in Range(Held(lease)) : ledger[p].owner = l /\ content[p] = l

\* Law 4: no page is free, or another's, while something can still be written into it.
QuietBeforeFree == \A f \in flights : ledger[f[3]].owner = f[1]

\* Section 2, "closed": every write for the lease has completed, and none will ever be posted.
ClosedIsAPromise ==
    \A l \in Ls : said[l] # "" \/ l < floor =>
        /\ \A f \in flights : f[1] # l
        /\ writer[l].state \in {"absent", "closing"}

\* Law 11: where nothing more can happen, every request has ended and every page is FREE.
AllHome ==
    /\ \A r \in Rs : router[r].state = "ended"
    /\ \A p \in Ps : ledger[p].state = "free"
    /\ \A l \in Ls : writer[l] = NoWriter /\ decode[l] = NoLease
EverythingComesHome == ENABLED Next \/ AllHome

\* And every run comes there: nothing goes round in circles.
Spec == Init /\ [][Next]_vars /\ WF_vars(Next)
EveryRunEnds == <>[]AllHome
=============================================================================
