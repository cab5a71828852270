"""Words that count as one token each, with the space before them, in the tokenizers of today's models.

Rules it keeps:
- `WORDS` are for drawing filler text from: plain words of at most seven letters, none of them a number, a
  colour or a word that a prompt of ours asks for.
- `STARTS` are those of them that count as one token without a space before them, too: a text begins with one.
- `MORE_WORDS` are other words that prompts are made of. They are counted, never drawn.
- That a word is one token is a supposition: the counter checks it on the server at hand.
"""

_WORDS_TEXT = """
    above after again allow almost alone along already also always among amount animal another answer
    apart appear area around arrive away back ball band bank base basket bear beat beauty became because
    been before began behind being believe below beside best better between bird blow boat body bone book
    born both bottle bottom bought branch bridge bright brought burn busy button call came camp capital
    captain card care carpet case caught cause cell center century certain chance change chapter charge
    choose circle city class close coat cold collect column come common company compare contain control
    cook cool copy corn corner correct cost could country course create crop cross current deal dear
    decide deep degree depend desert design develop differ dinner direct discuss distant divide doctor
    does dollar done door down draw dress drink drop during each early ease edge effect either element
    else energy engine enough even evening ever every example except excite expect face fact fair fall
    family famous farm farmer fast feed feel feet fell felt figure fill find fine finger finish fire fish
    flat flow flower follow food foot forest form forward found free friend from full game garden gather
    gave general gentle give glad glass gone good govern grass great grew ground group grow guess hair
    hammer hand happen happy harbor hard have head hear heat held help here high hill history hold hole
    home hope hour house huge human hunt idea imagine inch include insect instant invent iron island
    jacket join jump just keep kept kind kitchen knew know ladder lake land large last late lead least
    left length less letter level life lift like line liquid list listen little live locate lone long look
    lost loud love machine made magnet main make many mark market mass master matter mean meant measure
    meat meet melody method middle might mile milk mind mine minute mirror miss modern moment money moon
    more morning most motion move moved much music must name nation natural nature near neck need needle
    never next night noon nose note nothing notice noun number object observe office often once only open
    operate order other over oxygen page pair parent part party pass past path pattern pencil people
    perhaps period person phrase picture pillow place plan planet play please plural point poor port pose
    post power prepare present press pretty problem process produce product proper protect provide pull
    push quart quite rabbit rail rain rather read real reason receive record region repeat require rest
    rested result rich ride right ring rise road rock roll room root rope rose rule saddle safe said sail
    salt same sand save school science search season seat section seed seem segment select self sell send
    sense sent settle several shall ship shoe shop should show side sign silent similar simple since sing
    singer single size skin slip slow small smell snow soft soil some song soon special speech spot spread
    spring square stable star start state station stay stead step still stop story strange stream street
    stretch string strong student subject success such sudden suggest suit summer supply support sure
    surface swim symbol system tail take talk tall teacher team teeth tell term test than thank that them
    then there these they thin thing think this those though thought through thus ticket time tiny tire
    told tone took tool total toward town travel tree trip trouble true tube tunnel turn turned turtle
    type under unit until valley vary verb very view village violin vowel wait waited walk wall want warm
    wash water wave wear weather week weight well went were what when where whether which while whole
    whose wide wild will wind window wing winter wire wish with wonder wood word work world would written
    yard year young your
"""
_MORE_TEXT = """
    a able across act add age ago agree air all an and any apple arm art as ask baby bad bag basic be bed
    big bit black block blue board box boy bread break bring broad broke brother brown build built
    business but buy by can car carry cat catch chair character chart check chief child children church
    claim clean clear climb clock cloth cloud coast color complete condition consider continue count cover
    cow crowd cry cut dance danger dark day describe did difficult do dog dream drive dry ear earth east
    eat egg eight electric end enter equal especially event exact exactly exercise experience experiment
    eye far father favor fear few field final first fit five floor fly following for force four fresh
    front fruit fun gas get girl go gold got grand gray green guide had half has hat heard heart heavy her
    him his hit horse hot how hundred hurry i ice if in indicate industry instrument interest is it job
    joy key king lady language laugh law lay learn leave led leg let lie light log lot low major man map
    match material may me men metal million mix molecule month mother mount mountain mouth multiply my
    necessary neighbor new nine no noise nor north now occur ocean of off offer oil old on one opposite or
    orange organ original our out own paint paper paragraph particular pay piece pitch plain plane plant
    populate position possible pound practice print probable property prove put question quick quiet race
    radio raise ran range reach ready red remember reply represent river round row rub run sat saw say
    scale score sea second see sentence separate serve set seven shape share sharp she sheet shell shine
    short shoulder shout sight silver sister sit six skill sky sleep slept smile so solution solve son
    sound south space speak speed spell spend spoke stand steam steel stick stone stood store straight
    study substance sugar sun surprise syllable table teach temperature ten the thick third thousand three
    throw tie to together too top touch track trade train triangle truck try twenty two up use usual value
    visit voice wagon was watch way we west wheel white who why wife woman women words write wrong wrote
    yellow yes yet you
"""
_STARTS_TEXT = """
    above after again almost along also always among another answer around because before between body
    book bottom call came card care case center change charge city class close column come common control
    cool copy correct cost country course create current deep design direct each early effect else energy
    engine enough even every example face fact family figure fill find fine follow food form found free
    friend from full game general give good great group grow hand happy hard have head help here high
    history home hour house human include join jump just keep kind know large last late least left length
    less letter level life like line list little live long look made make many mark market middle mind
    minute moment money more most move much music name nation natural nature near need never next night
    note nothing number object often once only open order other over page parent part pass past path
    pattern people perhaps period person picture place plan play please point port post power present
    press process product pull push read real record region repeat require rest result right road roll
    room root rule safe save school science search season section select self send sense several show side
    sign similar simple since single size slow small some special spring square start state station step
    stop story stream street string strong student subject success summer support surface system tail take
    team term test than thank that them then there these they thing think this though through time tool
    total town travel tree true turn type under unit until view wait walk wall water wave week weight well
    what when where which while whole will wind window winter with word work world year young your
"""
WORDS = tuple(_WORDS_TEXT.split())
STARTS = tuple(_STARTS_TEXT.split())
MORE_WORDS = tuple(_MORE_TEXT.split())
