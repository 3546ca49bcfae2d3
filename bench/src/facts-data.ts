/** One thing that users tell about themselves or their work, in two wordings, with the question that it answers. */
interface Topic {
  readonly tell: (value: string) => string;
  readonly again: (value: string) => string;
  readonly ask: string;
  readonly values: readonly string[];
  /** Tells a newer value. Only for topics that have one value at a time. */
  readonly change?: (value: string) => string;
}

export interface Experience {
  readonly user: number;
  /** Subject of one user and topic; a contradicting fact has the subject of the fact that it contradicts. */
  readonly about: string;
  readonly text: string;
  readonly kind: 'new' | 'repeat' | 'contradiction';
}

export interface FactQuery {
  readonly user: number;
  readonly about: string;
  readonly text: string;
  /** Part of the right answer's text, in lower case. */
  readonly value: string;
  /** The replaced value; null if the value never changed. */
  readonly stale: string | null;
}

export interface FactsData {
  readonly experiences: readonly Experience[];
  readonly queries: readonly FactQuery[];
}

export const USERS = 20;
const TOPICS_PER_USER = 22;
const NEW = 425;
const REPEATS = 50;
const CONTRADICTIONS = 25;
const QUERIES = 200;

const list = (words: string) => words.split(',');
const CITIES = list('Berlin,Lisbon,Oslo,Prague,Dublin,Vienna,Madrid,Turin');
const NAMES = list('Clara,Martin,Nadia,Peter,Rosa,Stefan,Ulla,Viktor');
const WEEKDAYS = list('Monday,Tuesday,Wednesday,Thursday,Friday');

const TOPICS: readonly Topic[] = [
  single('favourite colour', list('blue,green,red,orange,purple'), 'Which colour does the user like best?'),
  single('favourite food', list('ramen,lasagne,falafel,goulash,paella'), 'What does the user like to eat most?'),
  single('favourite editor', list('Vim,Emacs,Nano,Helix'), 'Which editor should be opened for the user?'),
  single('job title', list('nurse,architect,teacher,welder,pilot'), 'What does the user do for a living?'),
  single('email address', list('post@example.com,mail@example.org,me@example.net'), 'How can the user be reached by email?'),
  single('default branch', list('main,trunk,develop'), 'Into which branch does the user merge by default?'),
  single('monthly budget', list('400 euros,650 euros,900 euros'), 'How much may be spent for the user each month?'),
  single("sister's name", NAMES, "What is the name of the user's sister?"),
  {
    tell: (city) => `The user lives in ${city}.`,
    again: (city) => `By the way, the user resides in ${city}`,
    change: (city) => `The user has moved to ${city}.`,
    ask: 'Where is the home of the user?',
    values: CITIES,
  },
  {
    tell: (company) => `The user works at ${company}.`,
    again: (company) => `the user is employed at ${company}`,
    change: (company) => `The user now works for ${company}.`,
    ask: 'Who employs the user?',
    values: list('Northwind,Contoso,Fabrikam,Initrode'),
  },
  {
    tell: (day) => `The weekly review of the user is on ${day}.`,
    again: (day) => `As I said, the weekly review of the user is on ${day}`,
    change: (day) => `The weekly review of the user was moved to ${day}.`,
    ask: 'When does the weekly review take place?',
    values: WEEKDAYS,
  },
  {
    tell: (port) => `The staging server of the user listens on port ${port}.`,
    again: (port) => `Remember: the staging server of the user listens on port ${port}`,
    change: (port) => `The staging server of the user is now listening on port ${port}.`,
    ask: 'On which port can staging be reached?',
    values: list('8080,9090,7070,6060'),
  },
  {
    tell: (limit) => `The upload limit of the API is ${limit} MB.`,
    again: (limit) => `The API's upload limit is ${limit} MB`,
    change: (limit) => `The upload limit of the API was raised to ${limit} MB.`,
    ask: 'How large may an uploaded file be?',
    values: list('5,10,25,50'),
  },
  several(
    (thing) => `The user likes ${thing}.`,
    (thing) => `The user enjoys ${thing}`,
    'What does the user enjoy?',
    list('sailing,chess,pottery,gardening'),
  ),
  several(
    (thing) => `The user is allergic to ${thing}.`,
    (thing) => `I'm allergic to ${thing}`,
    'Which allergies does the user have?',
    list('peanuts,pollen,shellfish,penicillin'),
  ),
  several(
    (thing) => `The user speaks ${thing}.`,
    (thing) => `The user really speaks ${thing}`,
    'Which languages does the user know?',
    list('Greek,Turkish,Finnish,Korean'),
  ),
  several(
    (thing) => `The user has visited ${thing}.`,
    (thing) => `Once more: the user has visited ${thing}`,
    'Where has the user travelled to?',
    list('Iceland,Peru,Kenya,Japan'),
  ),
  several(
    (thing) => `The user owns a ${thing}.`,
    (thing) => `The user owns a ${thing}!`,
    'Which animal does the user keep?',
    list('parrot,terrier,tortoise,hamster'),
  ),
  several(
    (thing) => `The user plays the ${thing}.`,
    (thing) => `The user also plays the ${thing}`,
    'Which instrument can the user play?',
    list('cello,trumpet,accordion,harp'),
  ),
  several(
    (thing) => `Deployments of the user fail when ${thing}.`,
    (thing) => `deployments of the user fail when ${thing}`,
    'Why do deployments go wrong?',
    list('the disk is full,the token has expired,two of them overlap'),
  ),
  several(
    (thing) => `Dates in the reports of the user are written ${thing}.`,
    (thing) => `Dates in the user's reports are written ${thing}`,
    'How should a date look in a report?',
    list('day first,year first,with the month in words'),
  ),
  several(
    (thing) => `The parser of the user chokes on ${thing}.`,
    (thing) => `The user's parser chokes on ${thing}`,
    'What can the parser not cope with?',
    list('trailing commas,nested quotes,empty lines,tabs'),
  ),
];

/** Facts of users, of which some are repeated and some change later, and questions about the facts. Equal in every run. */
export function factsData(): FactsData {
  const random = randomOf(7);
  const fresh = Array.from({ length: USERS }, (_, user) =>
    TOPICS.slice(0, TOPICS_PER_USER).map((topic) => ({ user, topic, value: pick(topic.values, random) })),
  )
    .flat()
    .slice(0, NEW);
  const shuffled = shuffle(fresh, random);
  const repeated = shuffled.slice(0, REPEATS);
  const changed = shuffled
    .slice(REPEATS)
    .filter(({ topic }) => topic.change !== undefined)
    .slice(0, CONTRADICTIONS);
  const changes = changed.map((one) => ({
    ...one,
    value: pick(
      one.topic.values.filter((value) => value !== one.value),
      random,
    ),
    stale: one.value,
  }));
  const experiences = [
    ...shuffled.map((one) => experienceOf(one, one.topic.tell, 'new')),
    ...repeated.map((one, at) => experienceOf(one, at % 2 === 0 ? one.topic.tell : one.topic.again, 'repeat')),
    ...changes.map((one) => experienceOf(one, one.topic.change ?? one.topic.tell, 'contradiction')),
  ];
  const asked = [
    ...changes,
    ...repeated.map((one) => ({ ...one, stale: null })),
    ...shuffled.slice(REPEATS).map((one) => ({ ...one, stale: null })),
  ];
  const unchanged = asked.filter((one) => one.stale !== null || !changes.some((change) => aboutOf(change) === aboutOf(one)));
  const queries = unchanged.slice(0, QUERIES).map(({ user, topic, value, stale }) => ({
    user,
    about: aboutOf({ user, topic }),
    text: topic.ask,
    value: value.toLowerCase(),
    stale: stale?.toLowerCase() ?? null,
  }));
  return { experiences, queries };
}

interface Told {
  readonly user: number;
  readonly topic: Topic;
  readonly value: string;
}

function experienceOf(told: Told, say: (value: string) => string, kind: Experience['kind']): Experience {
  return { user: told.user, about: aboutOf(told), text: say(told.value), kind };
}

function aboutOf({ user, topic }: Pick<Told, 'user' | 'topic'>): string {
  return `${user}/${TOPICS.indexOf(topic)}`;
}

function single(attribute: string, values: readonly string[], ask: string): Topic {
  return {
    tell: (value) => `The user's ${attribute} is ${value}.`,
    again: (value) => `The ${attribute} of the user is ${value}`,
    change: (value) => `The user's ${attribute} is now ${value}.`,
    ask,
    values,
  };
}

function several(tell: Topic['tell'], again: Topic['again'], ask: string, values: readonly string[]): Topic {
  return { tell, again, ask, values };
}

function pick<T>(values: readonly T[], random: () => number): T {
  return values[Math.floor(random() * values.length)] as T;
}

function shuffle<T>(values: readonly T[], random: () => number): T[] {
  return values
    .map((value) => ({ value, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ value }) => value);
}

/** A Mulberry32 generator of numbers from 0 to 1. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
