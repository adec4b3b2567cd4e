"""Fifty passages on everyday subjects, and twenty questions, each on one of them in other words."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    id: str
    query: str
    answer: str
    """Name of the passage."""


PASSAGES = {
    "sourdough": (
        "A sourdough starter is a mixture of flour and water in which wild yeast and bacteria live. Fed once a day, it "
        "raises a loaf without any yeast from the shop and gives it a slightly sour taste."
    ),
    "cast iron": (
        "Cast iron pans rust when they are left wet. Wash them briefly by hand, dry them on the stove, and rub a few "
        "drops of oil into the surface while the metal is still warm."
    ),
    "coffee": (
        "Beans that are ground too finely let the water through slowly, and the cup turns out bitter. A coarser grind "
        "or a shorter brewing time makes it milder."
    ),
    "fermented cabbage": (
        "Shredded cabbage is salted and pressed until it stands in its own juice. CacheLookup away from the air in a cool "
        "room, it turns into sauerkraut within a few weeks and lasts through the winter."
    ),
    "knives": (
        "A kitchen knife is sharpened on a wet stone, held at an angle of about fifteen degrees. The steel rod that "
        "many cooks use only straightens the edge between two sharpenings."
    ),
    "tomatoes": (
        "Tomato seedlings are planted out after the last frost, deep enough for the stem to grow roots of its own. "
        "They want sun, steady watering at the foot, and leaves that stay dry."
    ),
    "compost": (
        "A compost heap needs green scraps such as peelings and grass, and brown ones such as straw and cardboard. "
        "Turned every few weeks it gets air, stays warm inside and does not smell."
    ),
    "slugs": (
        "Slugs come out at night and eat young lettuce down to the ground. Copper tape around the bed, beer traps and "
        "a few toads in the garden keep them in check without poison."
    ),
    "orchids": (
        "Most orchids that are sold for the window sill grow on trees in nature. Dip the pot in water once a week, let "
        "it drip off, and never leave the roots standing in a full saucer."
    ),
    "pruning": (
        "Apple trees are pruned in late winter, before the buds open. Take out dead wood and branches that cross, so "
        "that light reaches the middle of the crown."
    ),
    "bees": (
        "A worker bee that has found flowers dances on the comb when she returns to the hive. The angle of the dance "
        "shows her sisters the direction with respect to the sun, its length the distance."
    ),
    "swallows": (
        "Barn swallows leave Europe in September and fly over the Sahara to spend the cold months in southern Africa. "
        "They find the way back to the same stable in spring."
    ),
    "whales": (
        "Humpback males sing for hours in their breeding grounds. All the animals of one ocean share a tune, which "
        "changes a little from year to year."
    ),
    "octopus": (
        "An octopus has three hearts and blue blood. Most of its nerve cells sit in the arms, which can taste and "
        "decide on their own what to grip."
    ),
    "hedgehogs": (
        "Hedgehogs eat their fill in autumn and sleep under leaves until April. Their heart then beats only a few times "
        "a minute, and the body cools to nearly the temperature around it."
    ),
    "puppies": (
        "A young dog has to go outside after every meal, every nap and every game. Praise it at the right spot and "
        "clean up accidents without scolding, and it will be house-trained in a few weeks."
    ),
    "cats": (
        "Cats knead soft blankets with their front paws, a habit from the time when they drank milk from their mother. "
        "Grown animals do it when they feel at ease."
    ),
    "sleep": (
        "The blue part of the light of screens holds back melatonin, the hormone that makes us tired. Whoever puts the "
        "phone away an hour before bedtime usually nods off sooner."
    ),
    "fever": (
        "A raised body temperature is a defence against infection and needs no treatment in itself. Adults should see "
        "a doctor when it stays above 39 degrees for three days or comes with a stiff neck."
    ),
    "sunburn": (
        "Skin that has turned red after a day at the beach should be cooled with damp cloths and kept out of the sun. "
        "Drink plenty of water and leave blisters closed."
    ),
    "back pain": (
        "Pain in the lower back usually goes away within six weeks. Staying in bed makes it last longer: gentle walks "
        "and a warm bath help more."
    ),
    "vaccines": (
        "A vaccine shows the immune system a harmless piece of a germ. The body makes antibodies and keeps memory cells, "
        "so that it reacts faster if the real one ever arrives."
    ),
    "teeth": (
        "Bacteria on the teeth turn sugar into acid, which dissolves the enamel. Brushing twice a day with fluoride "
        "toothpaste and cleaning between the teeth prevents most cavities."
    ),
    "marathon": (
        "For a first marathon the weekly distance is raised slowly over four months, by no more than a tenth a week. "
        "The longest training run is about thirty kilometres, three weeks before the race."
    ),
    "swimming": (
        "In the front crawl the head stays in line with the body and turns sideways to breathe. The legs kick decode_or_none "
        "from the hip, and most of the speed comes from the arms."
    ),
    "chess": (
        "In chess the king may castle only if neither he nor the rook has moved before and no square on his way is "
        "attacked. He goes two squares towards the rook, which jumps over him."
    ),
    "offside": (
        "A football player is offside when she is nearer to the goal line than the ball and the second last opponent "
        "at the moment the pass is played. BreakerState level with the defender is allowed."
    ),
    "bicycle": (
        "To mend a flat tyre, lever it off the rim, pull out the inner tube and find the hole by its bubbles under "
        "water. Roughen the rubber, let the glue dry and press the patch on."
    ),
    "electric cars": (
        "The battery of an electric car charges quickest between one fifth and four fifths of its capacity. In frost "
        "the range can shrink by a third, since the cabin has to be heated from it too."
    ),
    "tides": (
        "The gravity of the moon raises the ocean on the near and the far side of the earth. As the planet turns, most "
        "coasts see high water twice a day; with the sun in line it rises highest."
    ),
    "rainbow": (
        "Sunlight that enters a raindrop is bent, thrown back from its far side and bent again on the way out, each "
        "colour by its own angle. That is why the arc appears only with the sun behind us."
    ),
    "earthquakes": (
        "Where two plates of the crust are stuck together, tension builds up for decades. When the rock gives way the "
        "ground shakes, and the waves are felt hundreds of kilometres away."
    ),
    "volcano": (
        "The thinner the molten rock, the more calmly a volcano behaves. Sticky magma holds its gases back until the "
        "pressure bursts the mountain open."
    ),
    "black holes": (
        "When a very heavy star has burnt its fuel, its core collapses under its own weight. Inside a certain distance "
        "from what is left not even light can get away."
    ),
    "mars": (
        "A day on Mars lasts forty minutes longer than one on earth. The thin air there is nearly all carbon dioxide, "
        "and the red colour of the soil comes from iron oxide."
    ),
    "photosynthesis": (
        "Green leaves take in carbon dioxide and water and make sugar from them with the energy of light. The oxygen "
        "that they give off is what animals breathe."
    ),
    "rome": (
        "The aqueducts of Rome carried water from springs in the hills over distances of up to ninety kilometres. They "
        "fell by only a few centimetres in every hundred metres, and most of their course lay underground."
    ),
    "printing": (
        "In Mainz around 1450 Johannes Gutenberg cast single letters of metal that could be set in lines, inked and "
        "used again. Within fifty years books were printed in more than two hundred towns."
    ),
    "pyramids": (
        "The pyramids of Giza were built by paid labourers who lived in a village nearby, not by slaves. Their bakeries "
        "and graves have been dug up."
    ),
    "plague": (
        "The Black Death came to Sicily by ship in 1347 and killed about a third of the people of Europe within five "
        "years. Labour became scarce afterwards, and wages rose."
    ),
    "berlin wall": (
        "On the evening of 9 November 1989 an official announced by mistake that travel to the west was free at once. "
        "Thousands went to the crossings, and before midnight the guards in Berlin opened the gates."
    ),
    "mortgage": (
        "A mortgage with a fixed rate costs the same every month until the term ends, whatever happens on the market. "
        "A variable one begins cheaper and may become more expensive."
    ),
    "inflation": (
        "When prices in general rise, each coin buys less than the year before. Central banks answer with higher "
        "interest rates, which make borrowing dearer and saving more attractive."
    ),
    "tax return": (
        "Employees can deduct the way to work, tools and training from their taxable income. Keep the receipts for four "
        "years, since the office may ask for them."
    ),
    "tenancy": (
        "A landlord must return the deposit within a reasonable time after the tenant has moved out. Money may be held "
        "back only for damage beyond normal wear or for unpaid rent."
    ),
    "passwords": (
        "A password manager makes a long random password for every account and remembers it for you. Together with a "
        "second factor it protects you even when one of the services is broken into."
    ),
    "backups": (
        "Keep three copies of important files on two kinds of storage, one of them in another building. Try now and "
        "then whether they can really be restored."
    ),
    "wifi": (
        "Thick walls, microwave ovens and the neighbours' networks weaken wireless reception. Place the router high up "
        "in the middle of the flat, or choose another channel in its settings."
    ),
    "violin": (
        "The bow of a violin is strung with horsehair, which is rubbed with rosin. Without it the hair would slide over "
        "the strings and make no sound."
    ),
    "watercolour": (
        "In watercolour the white of the paper stands for the lightest tones, so painters work from light to dark. Wet "
        "colour on a wet sheet runs and gives soft edges, on a dry one it stays sharp."
    ),
}
"""Passages by name."""

QUESTIONS = (
    Question("skillet", "how do I stop my iron skillet from going rusty", "cast iron"),
    Question("harsh espresso", "why does my espresso taste so harsh", "coffee"),
    Question("lettuce", "something keeps eating my salad plants overnight", "slugs"),
    Question("kitchen waste", "what can I throw on the pile to turn kitchen waste into soil", "compost"),
    Question("fruit trees", "when should I cut back fruit trees", "pruning"),
    Question("honeybees", "how do honeybees tell each other where to find nectar", "bees"),
    Question("migration", "where do migrating birds go in winter", "swallows"),
    Question("hibernation", "what happens to the body of an animal during hibernation", "hedgehogs"),
    Question("toilet training", "my new puppy keeps peeing on the carpet", "puppies"),
    Question("insomnia", "I can't fall asleep after scrolling on my smartphone", "sleep"),
    Question("high temperature", "when is a high temperature dangerous enough to call the physician", "fever"),
    Question("tooth decay", "how to avoid tooth decay", "teeth"),
    Question("puncture", "repairing a punctured bike wheel", "bicycle"),
    Question("range", "does cold weather affect how far an EV can drive", "electric cars"),
    Question("sea level", "why does the sea come in and go out every day", "tides"),
    Question("eruptions", "what makes some eruptions explosive and others gentle", "volcano"),
    Question("movable type", "who invented movable type", "printing"),
    Question("cost of living", "what do policymakers do when the cost of living goes up", "inflation"),
    Question("security deposit", "can the owner of my apartment keep my security deposit", "tenancy"),
    Question("slow internet", "the internet signal in my bedroom is bad", "wifi"),
)
