---------------------------- MODULE Transfer ----------------------------
(* The transfer protocol of kvfence, written from the design and not from the cores.

   It is a projection: the ledger of the decode node, the one-sided writes in flight, the control
   messages in flight, and what each role remembers of each lease and request. Every action is one
   atomic step of the world: a role that takes a message says all its answers in the same step.
   The comments name the sentence of the design that an action comes from ("4.1.3" is section 4.1,
   item 3; "law 4" is section 3). docs/twin.md describes variables and encoding.

   What it leaves out: tokens, seals as bytes, sampling, prefix sharing, incarnations after the first. *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Requests,    \* how many requests are submitted (numbered from 1)
    Pages,       \* usable pages of the decode node (numbered from 0)
    Remote,      \* pages of a prompt, all written by the prefill node
    Sources,     \* pages of the prefill node
    Abort,       \* the client of a request may leave at any moment
    Deadline,    \* the lease timer of decode may fire at any moment
    Mutant       \* "none", or the law that is broken on purpose

None == 0
Rs == 1..Requests
Ps == 0..(Pages - 1)
Ls == 1..Requests          \* one attempt a request, so no more leases than requests

VARIABLES
    ledger,      \* page -> [state, owner, epoch]                       (design, section 2: page states)
    content,     \* page -> the lease whose bytes lie in it, None under a stamp
    flights,     \* {<<lease, ordinal, page, epoch>>}: posted, not landed
    wires,       \* ordered pair of peers -> FIFO of messages
    router,      \* request -> state                                    (law 5: one field)
    writer,      \* lease -> what the prefill node remembers of it
    decode,      \* lease -> what the decode node remembers of it
    step         \* leases in the decode step that was launched and has not retired

vars == <<ledger, content, flights, wires, router, writer, decode, step>>

Pairs == {"rd", "dr", "rp", "dp", "pd"}
Free == [state |-> "free", owner |-> None]
NoLease == [state |-> "none", request |-> None, pages |-> <<>>, tail |-> None, closed |-> FALSE, asks |-> FALSE]
NoWriter == [state |-> "none", request |-> None, pages |-> <<>>, open |-> {}, busy |-> FALSE]

Init ==
    /\ ledger = [p \in Ps |-> [state |-> "free", owner |-> None, epoch |-> 0]]
    /\ content = [p \in Ps |-> None]
    /\ flights = {}
    /\ wires = [w \in Pairs |-> <<>>]
    /\ router = [r \in Rs |-> "new"]
    /\ writer = [l \in Ls |-> NoWriter]
    /\ decode = [l \in Ls |-> NoLease]
    /\ step = {}

----------------------------------------------------------------------------
(* Wires *)

Head1(w) == Head(wires[w])
Has(w) == Len(wires[w]) > 0
\* Take the head of one wire and append to others, in one step. `says` maps wires to sequences.
Exchange(w, says) == [v \in Pairs |->
    (IF v = w THEN Tail(wires[v]) ELSE wires[v]) \o (IF v \in DOMAIN says THEN says[v] ELSE <<>>)]
Say(says) == [v \in Pairs |-> wires[v] \o (IF v \in DOMAIN says THEN says[v] ELSE <<>>)]
Nothing == [v \in {} |-> <<>>]

----------------------------------------------------------------------------
(* Pages of decode *)

FreePages == {p \in Ps : ledger[p].state = "free"}
RECURSIVE Lowest(_, _)
Lowest(set, n) ==
    IF n = 0 THEN <<>>
    ELSE LET p == CHOOSE p \in set : \A q \in set : p <= q IN <<p>> \o Lowest(set \ {p}, n - 1)

Range(s) == {s[i] : i \in 1..Len(s)}
PagesOf(l) == {p \in Ps : ledger[p].owner = l}
Marked(set, state) == [p \in Ps |-> IF p \in set THEN [ledger[p] EXCEPT !.state = state] ELSE ledger[p]]
Freed(set) == [p \in Ps |-> IF p \in set THEN [state |-> "free", owner |-> None, epoch |-> ledger[p].epoch]
                            ELSE ledger[p]]

\* Law 4: closed by the writer, and no launched step that reads it is left.
Quiet(closed, l, s) == \/ closed /\ l \notin s
                       \/ Mutant = "free_under_step" /\ closed
                       \/ Mutant = "free_on_abort" /\ l \notin s

\* 4.2: "Decode sends its writers the lowest sequence number not yet freed."
LowestLive(d) ==
    LET used == {l \in Ls : d[l].state # "none"}
        live == {l \in used : d[l].state # "gone"}
    IN IF live = {} THEN Cardinality(used) + 1 ELSE CHOOSE l \in live : \A m \in live : l <= m

Home(l, d) == [d EXCEPT ![l] = [NoLease EXCEPT !.state = "gone"]]
FreeSays(l, d) == <<<<"LowestLive", LowestLive(Home(l, d))>>>>

----------------------------------------------------------------------------
(* The router *)

\* 4.1.1: "Reserve(attempt, writer, tokens) to decode".
Submit(r) ==
    /\ router[r] = "new"
    /\ router' = [router EXCEPT ![r] = "reserving"]
    /\ wires' = Say([rd |-> <<<<"Reserve", r>>>>])
    /\ UNCHANGED <<ledger, content, flights, writer, decode, step>>

\* 4.1.3: "Prefill(attempt, tokens, lease)". A reservation for what has ended is dropped: decode has its abort.
RouterReserved ==
    /\ Has("dr") /\ Head1("dr")[1] = "Reserved"
    /\ LET m == Head1("dr") r == m[2] IN
        IF router[r] = "reserving"
        THEN /\ router' = [router EXCEPT ![r] = "running"]
             /\ wires' = Exchange("dr", [rp |-> <<<<"Prefill", r, m[3], m[4]>>>>])
        ELSE /\ wires' = Exchange("dr", Nothing) /\ UNCHANGED router
    /\ UNCHANGED <<ledger, content, flights, writer, decode, step>>

\* 4.1.2 "or refuse"; law 7: a refused request ends with its reason.
RouterRefused ==
    /\ Has("dr") /\ Head1("dr")[1] = "ReserveRefused"
    /\ LET r == Head1("dr")[2] IN
        router' = [router EXCEPT ![r] = IF @ = "reserving" THEN "ended" ELSE @]
    /\ wires' = Exchange("dr", Nothing)
    /\ UNCHANGED <<ledger, content, flights, writer, decode, step>>

\* 4.1.7: tokens of other attempts are dropped; what has ended stays so (law 5).
RouterToken ==
    /\ Has("dr") /\ Head1("dr")[1] = "TokenMade"
    /\ wires' = Exchange("dr", Nothing)
    /\ UNCHANGED <<ledger, content, flights, router, writer, decode, step>>

RouterEnded ==
    /\ Has("dr") /\ Head1("dr")[1] = "AttemptEnded"
    /\ router' = [router EXCEPT ![Head1("dr")[2]] = "ended"]
    /\ wires' = Exchange("dr", Nothing)
    /\ UNCHANGED <<ledger, content, flights, writer, decode, step>>

\* 4.2: "Abort (client gone, deadline, operator) is legal in every state."
ClientGone(r) ==
    /\ Abort /\ router[r] \in {"reserving", "running"}
    /\ router' = [router EXCEPT ![r] = "ended"]
    /\ wires' = Say([rd |-> <<<<"Abort", r>>>>, rp |-> <<<<"Abort", r>>>>])
    /\ UNCHANGED <<ledger, content, flights, writer, decode, step>>

----------------------------------------------------------------------------
(* The prefill node *)

Held == {l \in Ls : writer[l].state \in {"computing", "writing", "draining"}}
Said(l, outcome) == <<<<"Closed", l, outcome>>>>

\* 4.1.3: "Prefill leases its own pages for the whole prompt at once, or refuses".
\* 4.2: a lease that was recorded as closed is refused when its Prefill arrives later.
WriterPrefill ==
    /\ Has("rp") /\ Head1("rp")[1] = "Prefill"
    /\ LET m == Head1("rp") r == m[2] l == m[3] IN
        CASE writer[l].state \in {"closed", "forgotten"} ->
                /\ wires' = Exchange("rp", Nothing) /\ UNCHANGED writer
          [] (Cardinality(Held) + 1) * Remote > Sources ->
                /\ writer' = [writer EXCEPT ![l].state = "closed"]
                /\ wires' = Exchange("rp", [pd |-> Said(l, "refused")])
          [] OTHER ->
                /\ writer' = [writer EXCEPT ![l] =
                     [state |-> "computing", request |-> r, pages |-> m[4], open |-> {}, busy |-> FALSE]]
                /\ wires' = Exchange("rp", Nothing)
    /\ UNCHANGED <<ledger, content, flights, router, decode, step>>

\* 4.1.4: "computes in chunks". The prompts of these scopes are one chunk.
ChunkLaunched(l) ==
    /\ writer[l].state = "computing" /\ ~writer[l].busy
    /\ writer' = [writer EXCEPT ![l].busy = TRUE]
    /\ UNCHANGED <<ledger, content, flights, wires, router, decode, step>>

\* 4.1.4: "seals each full page and writes it as soon as it is complete, in batches".
ChunkRetired(l) ==
    /\ writer[l].busy
    /\ IF writer[l].state = "computing"
       THEN /\ writer' = [writer EXCEPT ![l].busy = FALSE, ![l].state = "writing", ![l].open = 1..Remote]
            /\ flights' = flights \cup
                 {<<l, o, writer[l].pages[o][1], writer[l].pages[o][2]>> : o \in 1..Remote}
            /\ UNCHANGED wires
       ELSE /\ writer' = [writer EXCEPT ![l] = [NoWriter EXCEPT !.state = "closed"]]
            /\ wires' = Say([pd |-> Said(l, "failed")])
            /\ UNCHANGED flights
    /\ UNCHANGED <<ledger, content, router, decode, step>>

\* Section 6: a one-sided write; decode's processor sees nothing of it. Atomic by the page.
Land(f) ==
    /\ f \in flights
    /\ flights' = flights \ {f}
    /\ content' = [content EXCEPT ![f[3]] = f[1]]
    /\ UNCHANGED <<ledger, wires, router, writer, decode, step>>

\* 4.1.5: "after the positive completion of every write: Closed(lease, done(manifest)), once".
\* One that gave up waited for this too (4.2: an abort never interrupts a write in flight).
BatchCompleted(l) ==
    /\ writer[l].open # {}
    /\ \A f \in flights : f[1] # l
    /\ writer' = [writer EXCEPT ![l] = [NoWriter EXCEPT !.state = "closed"]]
    /\ wires' = Say([pd |-> Said(l, IF writer[l].state = "writing" THEN "done" ELSE "failed")])
    /\ UNCHANGED <<ledger, content, flights, router, decode, step>>

\* Gives a lease up: closes at once when nothing is in flight, else when it has come home.
GiveUp(l, w) ==
    IF writer[l].busy \/ (writer[l].open # {} /\ Mutant # "closed_before_quiet")
    THEN /\ writer' = [writer EXCEPT ![l].state = "draining"]
         /\ wires' = Exchange(w, Nothing)
    ELSE /\ writer' = [writer EXCEPT ![l] = [NoWriter EXCEPT !.state = "closed"]]
         /\ wires' = Exchange(w, [pd |-> Said(l, "failed")])

WriterAbort ==
    /\ Has("rp") /\ Head1("rp")[1] = "Abort"
    /\ LET mine == {l \in Ls : writer[l].state \in {"computing", "writing"}
                               /\ writer[l].request = Head1("rp")[2]} IN
        IF mine = {} THEN /\ wires' = Exchange("rp", Nothing) /\ UNCHANGED writer
        ELSE GiveUp(CHOOSE l \in mine : TRUE, "rp")
    /\ UNCHANGED <<ledger, content, flights, router, decode, step>>

\* 4.2: the writer answers Closed; it records the lease first, so that a later Prefill is refused.
WriterClose ==
    /\ Has("dp") /\ Head1("dp")[1] = "Close"
    /\ LET l == Head1("dp")[2] IN
        CASE writer[l].state \in {"computing", "writing"} -> GiveUp(l, "dp")
          [] writer[l].state = "draining" -> wires' = Exchange("dp", Nothing) /\ UNCHANGED writer
          [] writer[l].state = "forgotten" -> wires' = Exchange("dp", Nothing) /\ UNCHANGED writer
          [] OTHER -> /\ writer' = [writer EXCEPT ![l].state = "closed"]
                      /\ wires' = Exchange("dp", [pd |-> Said(l, "failed")])
    /\ UNCHANGED <<ledger, content, flights, router, decode, step>>

\* 4.2: "below it a writer refuses everything and forgets its records".
WriterLowest ==
    /\ Has("dp") /\ Head1("dp")[1] = "LowestLive"
    /\ writer' = [l \in Ls |-> IF l < Head1("dp")[2] THEN [NoWriter EXCEPT !.state = "forgotten"]
                               ELSE writer[l]]
    /\ wires' = Exchange("dp", Nothing)
    /\ UNCHANGED <<ledger, content, flights, router, decode, step>>

----------------------------------------------------------------------------
(* The decode node *)

Next1 == Cardinality({l \in Ls : decode[l].state # "none"}) + 1   \* the next sequence number

\* 4.1.2: "lease pages, stamp each 'reserved, unwritten' -> Reserved(lease, tag key), or refuse".
\* 4.1.6: one page more, that no remote writer is ever given, for the partly filled last one.
DecodeReserve ==
    /\ Has("rd") /\ Head1("rd")[1] = "Reserve"
    /\ LET r == Head1("rd")[2] need == Remote + 1 l == Next1 IN
        IF Cardinality(FreePages) < need
        THEN /\ wires' = Exchange("rd", [dr |-> <<<<"ReserveRefused", r>>>>])
             /\ UNCHANGED <<ledger, content, decode>>
        ELSE LET got == Lowest(FreePages, need)
                 refs == [o \in 1..Remote |-> <<got[o], ledger[got[o]].epoch + 1>>] IN
             /\ ledger' = [p \in Ps |-> IF p \in Range(got)
                    THEN [state |-> "reserved", owner |-> l, epoch |-> ledger[p].epoch + 1] ELSE ledger[p]]
             /\ content' = [p \in Ps |-> IF p \in Range(got) THEN None ELSE content[p]]
             /\ decode' = [decode EXCEPT ![l] = [NoLease EXCEPT !.state = "reserved", !.request = r,
                    !.pages = refs, !.tail = got[need]]]
             /\ wires' = Exchange("rd", [dr |-> <<<<"Reserved", r, l, refs>>>>])
    /\ UNCHANGED <<flights, router, writer, step>>

\* The end of a lease: home at once when it is quiet, else quarantine (4.2: "pages go to CLOSING").
End(l, closed, s, d, w, says) ==
    IF Quiet(closed, l, s)
    THEN /\ ledger' = Freed(PagesOf(l))
         /\ decode' = Home(l, d)
         /\ wires' = IF w = "" THEN Say(says @@ [dp |-> FreeSays(l, d)])
                     ELSE Exchange(w, says @@ [dp |-> FreeSays(l, d)])
    ELSE /\ ledger' = Marked(PagesOf(l), "closing")
         /\ decode' = [d EXCEPT ![l].state = "closing", ![l].closed = closed]
         /\ wires' = IF w = "" THEN Say(says) ELSE Exchange(w, says)

Ended(r) == [dr |-> <<<<"AttemptEnded", r>>>>]

DecodeAbort ==
    /\ Has("rd") /\ Head1("rd")[1] = "Abort"
    /\ LET mine == {l \in Ls : decode[l].state \in {"reserved", "verifying", "copying", "ready"}
                               /\ decode[l].request = Head1("rd")[2]} IN
        IF mine = {} THEN /\ wires' = Exchange("rd", Nothing) /\ UNCHANGED <<ledger, decode>>
        ELSE LET l == CHOOSE l \in mine : TRUE IN
             End(l, decode[l].closed, step, decode, "rd", Ended(decode[l].request))
    /\ UNCHANGED <<content, flights, router, writer, step>>

\* 4.1.6: "checks the manifest, verifies the seals, then starts". Law 5: CLOSING knows what it ignores.
DecodeClosed ==
    /\ Has("pd")
    /\ LET m == Head1("pd") l == m[2] IN
        CASE decode[l].state = "reserved" /\ m[3] = "done" ->
                /\ decode' = [decode EXCEPT ![l].state = "verifying", ![l].closed = TRUE]
                /\ wires' = Exchange("pd", Nothing) /\ UNCHANGED ledger
          [] decode[l].state = "reserved" /\ m[3] # "done" ->
                End(l, TRUE, step, decode, "pd", Ended(decode[l].request))
          [] decode[l].state = "closing" -> End(l, TRUE, step, decode, "pd", Nothing)
          [] OTHER -> wires' = Exchange("pd", Nothing) /\ UNCHANGED <<ledger, decode>>
    /\ UNCHANGED <<content, flights, router, writer, step>>

\* Law 3: starts only when every page's seal verifies.
SealsVerified(l) ==
    /\ decode[l].state = "verifying"
    /\ \A i \in 1..Remote : content[decode[l].pages[i][1]] = l
    /\ decode' = [decode EXCEPT ![l].state = "copying"]
    /\ ledger' = Marked({decode[l].pages[i][1] : i \in 1..Remote}, "sealed")
    /\ UNCHANGED <<content, flights, wires, router, writer, step>>

\* 4.1.6: "The partly filled last page is copied into a page that no remote writer was ever given".
TailCopied(l) ==
    /\ decode[l].state = "copying"
    /\ LET spare == decode[l].pages[Remote][1] IN
        /\ ledger' = [Freed({spare}) EXCEPT ![decode[l].tail].state = "open"]
        /\ content' = [content EXCEPT ![decode[l].tail] = l]
        /\ decode' = [decode EXCEPT ![l].state = "ready",
                         ![l].pages = SubSeq(@, 1, Remote - 1)]
        /\ wires' = Say([dr |-> <<<<"TokenMade", decode[l].request>>>>])
    /\ UNCHANGED <<flights, router, writer, step>>

StepLaunched ==
    LET rows == {l \in Ls : decode[l].state = "ready"} IN
    /\ step = {} /\ rows # {}
    /\ step' = rows
    /\ UNCHANGED <<ledger, content, flights, wires, router, writer, decode>>

\* 4.2: pages of launched steps that have not retired stay in CLOSING until now.
StepRetired(l) ==
    /\ step = {l}
    /\ step' = {}
    /\ IF decode[l].state = "ready"
       THEN End(l, TRUE, {}, decode, "",
                [dr |-> <<<<"TokenMade", decode[l].request>>, <<"AttemptEnded", decode[l].request>>>>])
       ELSE IF decode[l].state = "closing" THEN End(l, decode[l].closed, {}, decode, "", Nothing)
       ELSE UNCHANGED <<ledger, decode, wires>>
    /\ UNCHANGED <<content, flights, router, writer>>

\* 4.2: "while a lease is not closed and its deadline has fired, decode itself asks the writer".
LeaseExpired(l) ==
    /\ Deadline /\ decode[l].state \in {"reserved", "closing"} /\ ~decode[l].closed /\ ~decode[l].asks
    /\ IF decode[l].state = "reserved"
       THEN /\ ledger' = Marked(PagesOf(l), "closing")
            /\ decode' = [decode EXCEPT ![l].state = "closing", ![l].asks = TRUE]
            /\ wires' = Say([dp |-> <<<<"Close", l>>>>] @@ Ended(decode[l].request))
       ELSE /\ decode' = [decode EXCEPT ![l].asks = TRUE]
            /\ wires' = Say([dp |-> <<<<"Close", l>>>>])
            /\ UNCHANGED ledger
    /\ UNCHANGED <<content, flights, router, writer, step>>

----------------------------------------------------------------------------
Next ==
    \/ \E r \in Rs : Submit(r) \/ ClientGone(r)
    \/ RouterReserved \/ RouterRefused \/ RouterToken \/ RouterEnded
    \/ WriterPrefill \/ WriterAbort \/ WriterClose \/ WriterLowest
    \/ \E l \in Ls : ChunkLaunched(l) \/ ChunkRetired(l) \/ BatchCompleted(l)
    \/ \E f \in flights : Land(f)
    \/ DecodeReserve \/ DecodeAbort \/ DecodeClosed
    \/ \E l \in Ls : SealsVerified(l) \/ TailCopied(l) \/ StepRetired(l) \/ LeaseExpired(l)
    \/ StepLaunched

----------------------------------------------------------------------------
(* The laws *)

\* Laws 1 and 2: a step reads pages that its lease owns, with bytes written under that lease.
NoForeignRead == \A l \in step : \A p \in PagesOf(l) : content[p] = l
StepKeepsPages == \A l \in step : decode[l].state \in {"ready", "closing"}

\* Law 4: no page is free, or another's, while something can still be written into it.
QuietBeforeFree == \A f \in flights : ledger[f[3]].owner = f[1] /\ ledger[f[3]].epoch = f[4]

\* Section 2, "closed": every write for the lease has completed, and none will ever be posted.
ClosedIsAPromise == \A l \in Ls : writer[l].state \in {"closed", "forgotten"} => \A f \in flights : f[1] # l

\* Law 11: where nothing more can happen, every request has ended and every page is FREE.
AllHome == (\A r \in Rs : router[r] = "ended") /\ (\A p \in Ps : ledger[p].state = "free")
EverythingComesHome == ENABLED Next \/ AllHome
=============================================================================
