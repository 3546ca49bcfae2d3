import { type LabelledPair, pairs } from './labelled-pair.js';

/**
 * Facts as an agent keeps them about people, preferences and work. Pairs of `no` share a person or a subject.
 *
 * None of them contradict each other: "lives in Lisbon" and "lives in Porto" are near in every model, and meant to be found together.
 */
export const EVERYDAY_FACTS: readonly LabelledPair[] = [
  ...pairs('words', [
    ['Ann moved to Lisbon in March.', 'In March, Ann moved to Lisbon.'],
    ['The user prefers short answers without code comments.', 'The user prefers short answers, without comments in code.'],
    ['Ben is allergic to peanuts.', 'Ben has an allergy to peanuts.'],
    ['The weekly meeting is on Tuesdays at ten.', 'The weekly meeting is on Tuesday at 10.'],
    ['Clara works as a nurse in a hospital in Leeds.', 'Clara works as a nurse at a hospital in Leeds'],
    ['The report must be sent to the finance team by Friday.', 'The report has to be sent to the finance team by Friday.'],
    ['The database is backed up every night at two.', 'Every night at two the database is backed up.'],
    ["David's car is a blue estate from 2015.", 'David has a blue estate car from 2015.'],
  ]),
  ...pairs('task', [
    ['Ann moved to Lisbon in March.', 'Since this spring Ann has been living in the capital of Portugal, Lisbon.'],
    ['The user prefers short answers without code comments.', 'Replies should be brief, and code should not be commented.'],
    ['Ben is allergic to peanuts.', "Don't offer Ben food with peanuts: he reacts badly to them."],
    ['The weekly meeting is on Tuesdays at ten.', 'Our team meets each Tuesday morning at 10 o’clock.'],
    ['Clara works as a nurse in Leeds.', 'Clara has a nursing job in a Leeds hospital.'],
    ['The report must be sent to the finance team by Friday.', 'Finance needs to have the report before the end of the week.'],
    ['The database is backed up every night at two.', 'Backups of the database run daily at 02:00.'],
    ['Emma is learning to play the piano.', 'Emma has started piano lessons.'],
    ['Frank does not drink coffee after noon.', 'In the afternoon Frank avoids coffee.'],
    ["Gina's son starts school in September.", "In September Gina's boy will go to school for the first time."],
    ['The office is closed between Christmas and New Year.', 'Nobody is in the office in the last week of December, it is shut.'],
    ['Harry likes to travel by train rather than by plane.', 'Harry would rather take a train than fly.'],
    ['Deployments are not allowed on Fridays.', 'Nothing is deployed to production on a Friday.'],
    ['Iris reads a book every week.', 'Iris finishes about one book per week.'],
    ['The printer on the second floor is broken.', "The second-floor printer doesn't work."],
    ['Invoices are paid within thirty days.', 'We pay invoices no later than a month after receiving them.'],
    ['Jack is a vegetarian.', 'Jack eats no meat.'],
    ['The customer wants all documents in French.', 'Documents for this customer have to be written in French.'],
    ['Kate runs ten kilometres every Sunday.', 'On Sundays Kate goes for a 10 km run.'],
    ['Passwords must have at least twelve characters.', 'A password shorter than 12 characters is not accepted.'],
  ]),
  ...pairs('no', [
    ['Ann moved to Lisbon in March.', 'Ann plays tennis on Thursdays.'],
    ['The user prefers short answers without code comments.', 'The user works with Python and TypeScript.'],
    ['Ben is allergic to peanuts.', 'Ben has two older sisters.'],
    ['The weekly meeting is on Tuesdays at ten.', 'The yearly budget is decided in November.'],
    ['Clara works as a nurse in Leeds.', 'Clara drives a red car.'],
    ['The report must be sent to the finance team by Friday.', 'The finance team has moved to the third floor.'],
    ['The database is backed up every night at two.', 'The database runs on a server with 64 GB of memory.'],
    ['Emma is learning to play the piano.', 'Emma is afraid of spiders.'],
    ['Frank does not drink coffee after noon.', 'Frank grew up on a farm.'],
    ["Gina's son starts school in September.", 'Gina studied law in Vienna.'],
    ['The office is closed between Christmas and New Year.', 'The office has a kitchen on every floor.'],
    ['Harry likes to travel by train rather than by plane.', 'Harry collects old stamps.'],
    ['Deployments are not allowed on Fridays.', 'Unit tests must pass before a review.'],
    ['Iris reads a book every week.', 'Iris is a member of the city council.'],
    ['The printer on the second floor is broken.', 'The lift is inspected in June.'],
    ['Invoices are paid within thirty days.', 'Travel costs are paid back with the salary.'],
    ['Jack is a vegetarian.', 'Jack speaks Polish and Greek.'],
    ['The customer wants all documents in French.', 'The customer has offices in four countries.'],
    ['Kate runs ten kilometres every Sunday.', 'Kate is writing a novel.'],
    ['Passwords must have at least twelve characters.', 'The wifi of guests changes every day.'],
  ]),
];
