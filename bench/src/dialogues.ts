import { readFileSync } from 'node:fs';
import type { Message } from '@etude/contracts/conversation';
import { randomOf } from './memory-data.js';

/** A question about a dialogue, with the places of the turns that hold the answer. */
export interface Question {
  readonly text: string;
  readonly evidence: readonly number[];
}

export interface Dialogue {
  readonly name: string;
  readonly messages: readonly Message[];
  /** Places at which a session begins. */
  readonly sessions: readonly number[];
  readonly questions: readonly Question[];
}

export const DIALOGUES = ['friends', 'siblings', 'coach', 'assistant', 'workshop'] as const;
const SESSIONS = 22;
const SMALL_TALKS = 6;
const DAYS_APART_MAX = 16;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** Lines of a hand-written exchange; `key` marks the turn that answers the question with that key. */
type Scene = ReadonlyArray<{ readonly speaker: string; readonly text: string; readonly key: string }>;
type Random = () => number;

/**
 * A dialogue of 22 sessions, equal in every run. Its hand-written scenes are shuffled, but the second part of a story is in a later session
 * than the first part. Between the scenes is small talk about similar things.
 */
export function makeDialogue(name: (typeof DIALOGUES)[number], seed: number): Dialogue {
  const random = randomOf(seed);
  const [head = '', ...blocks] = readBlocks(name);
  const [first = '', second = '', day = ''] = head.replace('@ ', '').split(' ');
  const speakers = [first.replace('-', ' '), second.replace('-', ' ')] as const;
  const scenes = blocks.slice(0, -1).map((block) => sceneOf(block, speakers));
  const isLater = (scene: Scene) => scene.some(({ key }) => key.endsWith('b'));
  const early = shuffled(
    scenes.filter((scene) => !isLater(scene)),
    random,
  );
  const later = scenes.filter(isLater);
  const talks = smallTalks();
  const said: Array<Scene[number] & { readonly at: number }> = [];
  const sessions: number[] = [];
  let at = Date.parse(`${day}T17:00:00Z`);
  for (let session = 0; session < SESSIONS; session += 1) {
    sessions.push(said.length);
    const told = [
      ...early.slice(session, session + 1),
      ...(session < SESSIONS - later.length ? [] : [later[session - SESSIONS + later.length]!]),
    ];
    const talk = Array.from({ length: SMALL_TALKS }, () => talks.exchange(speakers, random));
    const lines = [...told, ...talk].map((scene) => ({ scene, place: random() })).toSorted((a, b) => a.place - b.place);
    for (const { scene } of lines) for (const line of scene) said.push({ ...line, at: (at += 1 + Math.floor((random() * HOUR_MS) / 20)) });
    at += (1 + Math.floor(random() * DAYS_APART_MAX)) * DAY_MS;
  }
  const isRole = first === 'user';
  const messages = said.map(({ speaker, text, at: when }) => ({
    role: isRole ? speaker : 'user',
    name: isRole ? '' : speaker,
    text,
    at: when,
  }));
  const questions = (blocks.at(-1) ?? '').split('\n').map((line) => {
    const [, keys = '', text = ''] = /^\? (\S+) (.*)$/.exec(line) ?? [];
    return { text, evidence: keys.split(',').map((key) => said.findIndex((one) => one.key === key)) };
  });
  return { name, messages, sessions, questions };
}

function readBlocks(name: string): string[] {
  return readFileSync(new URL(`../src/dialogues/${name}.txt`, import.meta.url), 'utf8')
    .trim()
    .split('\n\n');
}

function sceneOf(block: string, speakers: readonly [string, string]): Scene {
  return block.split('\n').map((line) => {
    const [, initial, text = '', key = ''] = /^(\S) (.*?)(?: \*(\S+))?$/.exec(line) ?? [];
    return { speaker: speakers.find((speaker) => speaker.startsWith(initial ?? '?'))!, text, key };
  });
}

/** Exchanges with named blanks. Within one exchange, a blank has one value. */
function smallTalks() {
  const [slots = '', ...templates] = readBlocks('small-talk');
  const values = new Map(slots.split('\n').map((line) => [line.split(' = ')[0]!, line.split(' = ')[1]!.split(' | ')] as const));
  return {
    exchange(speakers: readonly [string, string], random: Random): Scene {
      const [asks, answers] = random() < 0.5 ? speakers : speakers.toReversed();
      const chosen = new Map([...values].map(([slot, of]) => [slot, of[Math.floor(random() * of.length)]!]));
      chosen.set('A', asks).set('B', answers);
      const filled = (text: string) => text.replaceAll(/\{(\w+)\}/g, (_all, slot: string) => chosen.get(slot) ?? '');
      const lines = templates[Math.floor(random() * templates.length)]!.split('\n');
      return lines.map((line) => {
        const text = filled(line.slice(2));
        return { speaker: line.startsWith('<') ? asks : answers, text: `${text.charAt(0).toUpperCase()}${text.slice(1)}`, key: '' };
      });
    },
  };
}

function shuffled<T>(list: readonly T[], random: Random): T[] {
  return list
    .map((one) => ({ one, place: random() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ one }) => one);
}
