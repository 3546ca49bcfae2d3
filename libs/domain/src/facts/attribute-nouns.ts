/** Of these a thing has one. The last word of an attribute decides: "work email" is an email. */
const SINGLE: ReadonlySet<string> = setOf(
  'colour name surname nickname username address email phone number birthday birthdate age height weight size price cost fee salary income',
  'budget deadline limit timeout threshold port host hostname url domain password version branch locale timezone currency capital',
  'population area temperature status state stage phase priority severity location residence hometown birthplace nationality citizenship',
  'job occupation profession role title position licence license encoding separator delimiter indentation diet religion rank score rating',
  'grade speed rate frequency interval duration length width depth capacity quota region zone default maximum minimum max min average',
  'total count key prefix suffix extension headquarters venue date time day month year season expiry retention algorithm protocol codename',
  'motto slogan genre bedtime handle alias gender pin tier destination',
);
/** Whatever may be said of these, only names of them exclude each other: "my manager is kind" is not "my manager is Bob". */
const NAMED: ReadonlySet<string> = setOf(
  'manager boss supervisor wife husband spouse partner girlfriend boyfriend fiancé fiancée doctor dentist therapist coach trainer mentor',
  'landlord lawyer accountant mother father mom dad assistant ceo cto cfo chair chairman principal adviser advisor lead successor predecessor',
  'instructor database framework editor browser shell employer company department team school university backend compiler linter formatter',
  'runtime owner maintainer author founder leader president mayor director publisher language provider registry queue broker cache',
);
const MAKES_SINGLE: ReadonlySet<string> = setOf(
  'favourite default current primary main only max min total official preferred best worst biggest largest smallest chosen',
);
/** Of these there may be several even when one is named. */
const SEVERAL: ReadonlySet<string> = setOf('hobby friend sister brother sibling interest skill strength weakness colleague');

export function attributeKind(words: readonly string[]): 'single' | 'named' | 'other' {
  const head = words.at(-1) ?? '';
  if (words.some((word) => MAKES_SINGLE.has(word))) return 'single';
  if (SEVERAL.has(head)) return 'other';
  if (SINGLE.has(head)) return 'single';
  return NAMED.has(head) ? 'named' : 'other';
}

function setOf(...lines: readonly string[]): ReadonlySet<string> {
  return new Set(lines.flatMap((line) => line.split(' ')));
}
