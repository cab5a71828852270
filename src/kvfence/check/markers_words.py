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
    abide acted aisle album alter apply arrow asked await awake awful bacon basin beard blade blast brake
    brand bread break broad built cedar chain chase cheek chunk cited claim clock crane crown cubic dairy
    dance decay dusty elder elect empty essay extra fancy fault fined fixed flint fluid flush forge freed
    fully fuzzy genre goose grand grasp greet guard hatch hedge hired irony light lower lunch magic marry
    marsh match medal metro muddy newer patch pause paved prior rhino rider river robot rocky route safer
    sauce score screw shake shale sheep sight slope snail sonic sound space spark spoon staff stamp steel
    steer stood strip stuck study sweep swell sword threw timer tough train treat trend trick truly turbo
    upset urged usual wagon waist wired witty woman wrote
    """,
    """
    actor adopt agent alley altar attic audit badly baked bench broke brush camel candy cared carry cheer
    chief civil clash cover crack crawl crowd crush crust dream drift eager email exile exist fetch fever
    fleet flour gauge greed green grown guest guild hardy heart heavy inner input joint lance laugh layer
    learn liked liver logic loyal march metal mound noble outer pearl piano plate price print prove purge
    purse query quote raced radio rainy raise razor reach react ready realm repay resin rigid ruled sandy
    scale scrub setup shaft sharp shift shiny shirt sized sneak spell spend spoke steak steam sting stuff
    sunny sushi tasty tempo theme thick thumb tidal toast towel track tract trash trial tribe trout truth
    uncle valve vapor vault verge viral visit watch woody
    """,
    """
    baker basic berry blend boost brave cable cheap check choir clerk click cliff climb cloth clown coach
    coast color comet couch creed cured curly decor dough draft drive dwell earth elite exact faint ferry
    frame front frost glove grain grant guide haven hobby horse image index issue jewel juice laser lucky
    mercy merit minor month moose moral mouse moved naval needy nerve noisy north noted novel occur older
    olive opted organ owner oxide panel pedal piece pilot plain probe prose pupil quest rated reign reset
    ridge savvy scary scene scoop scout scrap sheer shout solve spare spear spicy spike stack stand stare
    stone store stove strap suite swamp swift swing syrup teach title token topic torch trail truck trunk
    unite upper urban vital voice wedge wiped worry worth
    """,
    """
    admin aided alert align ankle apple asset badge beach begin brick build bunny buyer canal catch charm
    chill clear cloak clone coded colon coral craft crest cycle delay ditch eaten elbow entry faded false
    favor feast fewer final flare flash flesh flick floor focal force fruit glory grade grape grind habit
    honor hoped humor hurry labor leave legit lemon linen lived lodge loose mayor meter moist mount mouth
    naive named noise opera paint panda paper pasta peach penny phone photo pinch pixel pizza poker posed
    proof pulse rally ranch ratio rhyme rough round seize shape sheet shook shown skate skill skirt slack
    smile solar speed spent spice spill split squad stage stake stall stiff stunt surge table taste trade
    tried troop valid verse waste weigh whale wheel yield
    """,
    """
    admit aimed alive arise armor blame block blunt booth brain brief buddy bunch caste chair chart chord
    cigar clean cloud crank cried crisp curve daily dense depot depth doubt drama drill drove eagle enjoy
    erase excel fence fibre field filed flame float flock flood forum fresh fried giant globe graph heard
    honey ideal imply judge juicy lever lined loved lunar lyric manga mango manor media merge metre miner
    motor movie newly ocean onset orbit ounce paste peace phase pitch plane polar porch pound prime proud
    proxy quiet range rehab relax relay rugby ruler rural salad scope serum serve shady share shine slate
    sleep smoke sober sport spray stern stick straw taken throw tiger timed touch tower trace trust tuned
    unity usage vinyl vocal width witch wrist write yeast
    """,
    """
    adapt agree alarm alloy amber angel angle arena audio avail award aware basil batch blank blind blink
    blown board borne bound brace bring burst cabin cache cargo chalk chose comic cough count crazy cream
    creek curry dated dealt diary digit donor drain drawn dried ebook enter equal event faced fairy fiber
    flank flora flown funny furry grace grill hairy handy hotel intro ivory knock label lease limit liner
    lobby major maker maple mixed model notch nurse offer optic owned plant prize quick renew reply roast
    rover royal salty saved scent shade shelf shell shore short sided skull slept slice slide smart snack
    solid speak spine steep stock storm style sugar sweet tally teddy tight tired trait tutor twist union
    value venue voted voter wheat wider windy woven youth
    """,
)

ALPHABETS: tuple[tuple[str, ...], ...] = tuple(tuple(table.split()) for table in _TABLES)
