import type { Cli } from '../cli.js';

/** Where Ctrl-C ends the work, says what has become of it. */
export async function sayingHowToGoOn<T>(
  { signal, out }: Pick<Cli, 'signal' | 'out'>,
  work: () => Promise<T>,
  words = 'interrupted; run the same again to go on',
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (signal.aborted) {
      out.status('');
      out.note(words);
    }
    throw error;
  }
}
