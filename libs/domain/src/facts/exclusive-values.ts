import { isNumber, stemmed } from './stem-words.js';

/** Of each, only one can be said of a thing at a time. */
const CLASSES: readonly ReadonlySet<string>[] = [
  'red green blue yellow orange purple violet pink brown black white grey silver gold beige turquoise teal cyan magenta maroon navy',
  'monday tuesday wednesday thursday friday saturday sunday',
  'january february march april may june july august september october november december',
  'morning afternoon evening night noon midnight',
  'daily weekly monthly yearly annually hourly quarterly nightly biweekly',
  'single married divorced widowed engaged separated',
  'spring summer autumn winter fall',
  'small medium large tiny huge big',
  'vegetarian vegan omnivore pescatarian carnivore',
  'on off',
  'open closed',
  'true false',
  'up down',
  'enabled disabled',
  'public private',
  'hot cold warm',
  'dark light',
  'optional required mandatory',
  'synchronous asynchronous',
  'ascending descending',
  'left right',
  'tabs spaces',
  'online offline',
  'alive dead',
  'pending approved rejected',
  'full empty',
  'mutable immutable',
  'stable unstable beta deprecated experimental',
  'cheap expensive',
  'increasing decreasing',
  'metric imperial',
  'beginner intermediate advanced expert',
  'low high medium',
  'first second third fourth fifth last',
].map((line) => new Set(line.split(' ').map(stemmed)));

export function areExclusive(a: string, b: string): boolean {
  return a !== b && ((isNumber(a) && isNumber(b)) || CLASSES.some((values) => values.has(stemmed(a)) && values.has(stemmed(b))));
}

const OTHER_LARGE_PLACES =
  'uk,usa,us,america,england,scotland,wales,europe,asia,africa,north america,south america,oceania,australia,scandinavia,bavaria,catalonia,ontario,quebec,british columbia,turkey,czech republic,holland,' +
  'alabama,alaska,arizona,arkansas,california,colorado,connecticut,delaware,florida,georgia,hawaii,idaho,illinois,indiana,iowa,kansas,kentucky,louisiana,maine,maryland,massachusetts,michigan,minnesota,mississippi,missouri,montana,nebraska,nevada,new hampshire,new jersey,new mexico,north carolina,north dakota,ohio,oklahoma,oregon,pennsylvania,rhode island,south carolina,south dakota,tennessee,texas,utah,vermont,virginia,washington,west virginia,wisconsin,wyoming';

/** Continents, countries and states: they hold places, so that a town and a country do not contradict each other. */
const LARGE_PLACES = regions();

export function isLargePlace(words: readonly string[]): boolean {
  return LARGE_PLACES.has(words.filter((word) => word !== 'the').join(' '));
}

function regions(): ReadonlySet<string> {
  const names = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'none' });
  const letters = Array.from({ length: 26 }, (_, at) => String.fromCharCode(65 + at));
  const countries = letters.flatMap((a) => letters.map((b) => names.of(a + b)?.toLowerCase() ?? ''));
  return new Set([...countries, ...OTHER_LARGE_PLACES.split(',')]);
}
