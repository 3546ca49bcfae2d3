import { z } from 'zod';
import { Scope } from './memory.js';
import { isVisible, VisibleText } from './visible-text.js';

export const TURNS_MAX = 1_000_000;

/** One message, as its speaker said it. Its text is kept byte for byte. */
export const Message = z.strictObject({
  /** Who speaks, such as "user", "assistant" or "tool". */
  role: VisibleText.max(64),
  /** Name of the speaker; empty: only the role is known. */
  name: z.string().trim().max(200).default(''),
  text: z.string().max(100_000).refine(isVisible, 'must have a visible character'),
  /** When it was said, in ms since 1970; null: unknown. */
  at: z.number().int().min(0).nullable().default(null),
});
export type Message = z.infer<typeof Message>;

export const Conversation = z.strictObject({
  /** Derived from the owner and `name`, so that an owner has only one conversation of each name. */
  id: z.string(),
  scope: Scope,
  /** The owner's name for the conversation, such as the id of a chat. */
  name: z.string().min(1).max(1_000),
  title: z.string().max(1_000),
  turns: z.number().int().min(0).max(TURNS_MAX),
  /** Number of turns that were read for facts; absent: none. */
  read: z.number().int().min(0).max(TURNS_MAX).optional(),
  createdAt: z.number().int(),
  updatedAt: z.number().int(),
});
export type Conversation = z.infer<typeof Conversation>;

export const Turn = Message.extend({
  id: z.string(),
  scope: Scope,
  conversation: z.string(),
  /** Position in the conversation, from 0. */
  index: z.number().int().min(0).max(TURNS_MAX),
  /** Beginnings of the two turns before this one, with their speakers. Search reads them too: an answer alone often doesn't name its topic. */
  previous: z.string(),
  /** When it was stored, in ms since 1970. */
  createdAt: z.number().int(),
});
export type Turn = z.infer<typeof Turn>;
