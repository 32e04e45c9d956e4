/** The words the simulated engine answers with: readable, harmless, and one token each. */
export const WORDS: readonly string[] = (
  "the a of and to in with for on from by over under between through after before while when where " +
  "thread weave loom warp weft shuttle heddle fabric pattern spool yarn knot edge cloth linen wool silk " +
  "cotton dye indigo crimson amber silver copper bright quiet slow steady gentle even narrow wide long short " +
  "small great early late warm cool clear plain simple careful patient honest useful common rare old new " +
  "river stone harbour bridge garden window lantern market mountain valley meadow forest island village road " +
  "morning evening winter summer autumn spring weather rain wind cloud light shadow water salt bread letter " +
  "worker master teacher sailor baker farmer miller painter reader writer neighbour traveller child friend " +
  "moves carries joins holds lifts turns draws keeps opens closes follows crosses gathers measures counts " +
  "answers waits listens begins ends returns settles grows falls rises rests works speaks reads writes sends " +
  "and then again together slowly always often never once more less almost enough only also still soon " +
  "hand wheel frame table line row column corner side middle front back hour day week year step place name " +
  "number part piece whole kind way word reason answer question story song sign map plan rule measure balance"
).split(" ").filter((word, index, all) => all.indexOf(word) === index);

/** Words that only the opening sentence of an answer uses. */
export const OPENING_WORDS: readonly string[] = [
  "This",
  "is",
  "simulated",
  "engine",
  "not",
  "language",
  "model",
  "it",
  "It",
  "was",
  "offered",
  "tools",
  "so",
  "what",
  "these",
  "words",
  "mean",
  "nothing",
];
