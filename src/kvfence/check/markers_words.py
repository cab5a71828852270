"""The words that markers are made of: six alphabets of 128 ordinary words, each of five letters.

Rules they keep (its test says so):
- No word is in two alphabets: a word says whose it is.
- Two words of one alphabet that stand side by side hold no third one across their border, so that they are
  read in one way even with nothing between them.
- They are common words, which most tokenizers hold whole and small models copy well.
"""

WORD_LETTERS = 5

_TABLES = (
    """
    aisle align altar alter angel angle annoy apply blend boast brand brush bunny cable canoe caste cater
    chain chart clash clean cliff cling cloud clown comet couch crank crawl creek crust cubic decor ditch
    draft drive dryer elect exact fever fiber flame flour flown flute forge frame globe grain grill guide
    guise haven hobby horse hotel index intro ivory jewel knock learn light lodge loyal lunch maple march
    minor newly noble noisy nurse olive organ oxide panel pedal piece pilot pitch plant pound price prior
    proof proxy purge purse ready rider ridge rigid route sandy scent scoop score screw shell shirt shore
    slide sneak speed stand stare steak steer stiff stock store sugar sweet swift tempo thumb title toast
    topic tough truly truth upper verse voice witty woman
    """,
    """
    actor agent agree alarm algae alloy amend apple arise audio audit avail baker berry birch blunt booth
    bound broke build charm chill chord claim clerk climb clone comic crisp cycle dance decay depot drain
    drill eager eaten elder faint fairy favor flock focal freed front fruit fully gauge goose graft grand
    grind grown hatch heart hurry ideal input irony issue label laser laugh lever lyric marry marsh mayor
    medal metal mixer month naive naval nerve noise novel ocean outer paint panda paper paste piano probe
    prove quick razor renew rhino rough round sauce scale scout seize shake shape sheer skate solar spent
    spike stage stake stern strap strip stuck stump suite sword syrup table taste tidal towel tract trade
    tread trial vapor watch wedge wheel wiser worth yield
    """,
    """
    abide admit alive armor asset awful basin batch beard bench blast brief bunch canal carry chase check
    cheer civil clear click clock cloth coast crack craft crave crest curve daily depth diary dream drift
    dwell eagle email enjoy erase exile extra false fancy fauna ferry fibre final flare fleet flesh flick
    float force frost giant grant greet habit hardy hazel humid humor layer legit limit logic lucky mercy
    merge moist motor movie muddy mural north owner pasta peace peach plane poker prose quest range reach
    resin roast rover rural salad savvy serum shine skirt skull sleep snack spear spell spice spicy sport
    spray stall stone stout stove tasty teddy thorn threw tower train trick troop truck trunk trust urban
    vocal weave weigh whale witch woody worry write yeast
    """,
    """
    alley amber annex badge badly basic basil begin blame blank blind boost borne brave brick burst buyer
    cabin cache cargo catch chalk chose cloak color crazy cream crowd dairy dealt delay dense donor dough
    drawn entry erect feast fence field flank funny glove grace grade haunt havoc heard heavy image imply
    juice juicy labor lease leave liner lunar manga miner model mound mouse mouth offer older opera optic
    ounce phone pinch pixel polar prize pupil quota ranch recap rehab relax reply rhyme salty scary setup
    shade shaft share sharp shout slack slept smile sober solid speak spend spine split spoon squat stack
    stalk steel straw style sunny swamp swing tally teach thick tight token trait trash uncle union unity
    usage value verge vinyl vital voter wagon waste youth
    """,
    """
    adapt album ankle arena arrow await awake bacon beach blade block blown board bring broad built candy
    cedar chunk cigar coach coral cough crane crown curly curry drama dusty elbow elite empty equip event
    excel fewer flair flint floor fresh fuzzy genre glory grape guard hairy handy honor inbox inner joint
    login lower maker mango manor match media metro moose moral needy newer notch occur onset orbit phase
    plain prime proud quake quiet rainy rally ratio realm reign rinse river rocky safer scene scope serve
    shady shale sheet shiny shook shown sight slice slope snowy solve sonic sound spill squad staff stamp
    steep stick stood stunt surge swell taken throw timer trace trail treat trend turbo tutor twist unfit
    upset usual valid vault viral wider width wrist wrote
    """,
    """
    admin adopt alert attic award aware blink brace brain brake bread break brink buddy camel chair cheap
    cheek chief choir cider colon count cover crush deter digit doubt drove earth ebook enter equal essay
    ethic exist fault fetch flash flood flora fluid flush forum furry graph grasp green guest guild hedge
    honey judge lance lapse lemon linen liver lobby loose magic major merit meter metre mould mount patch
    pause pearl penny photo pizza plank plate porch print pulse query quote radio raise react relay repay
    reset robot royal rugby ruler scrap scrub sheep shelf shift short skill slate smart smoke snail space
    spare spark spoke steam sting stool storm study stuff sushi sweep theme tiger torch touch track tribe
    trout unite valve venue visit waist wheat windy woven
    """,
)

ALPHABETS: tuple[tuple[str, ...], ...] = tuple(tuple(table.split()) for table in _TABLES)
