import { z } from 'zod';

/** Only spaces, controls, and characters that Unicode renders invisibly, such as U+200B. U+2800 is the blank Braille pattern. */
const UNSEEN = /^[\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]*$/u;

export const isVisible = (text: string) => !UNSEEN.test(text);

export const VisibleText = z
  .string()
  .trim()
  .refine(isVisible, {
    error: ({ input }) =>
      input === '' ? 'must not be empty' : 'must have a visible character; it has only invisible ones, such as U+200B',
  });
