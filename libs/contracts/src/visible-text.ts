import { z } from 'zod';

/** Spaces, controls, and what Unicode has shown as nothing, such as U+200B; U+2800 is a blank pattern of Braille. */
const UNSEEN = /^[\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]*$/u;

/** Whether there is anything to see in it. */
export const isVisible = (text: string) => !UNSEEN.test(text);

/** A text in which there is something to see, without spaces around it. */
export const VisibleText = z
  .string()
  .trim()
  .refine(isVisible, {
    error: ({ input }) =>
      input === '' ? 'must not be empty' : 'must have a character that can be seen; it has only such as U+200B, which cannot',
  });
