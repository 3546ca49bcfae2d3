import type { Output } from './output.js';

/** Off a terminal a line this often is enough. */
const NOTE_EVERY_MS = 10_000;

/** How far a long work is: a line that is overwritten on a terminal, a note now and then for everybody else. */
export class Progress {
  #notedAt: number;

  constructor(
    private readonly out: Pick<Output, 'live' | 'status' | 'note'>,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#notedAt = now();
  }

  tell(text: string): void {
    this.out.status(text);
    if (this.out.live || this.now() - this.#notedAt < NOTE_EVERY_MS) return;
    this.out.note(text);
    this.#notedAt = this.now();
  }

  end(): void {
    this.out.status('');
  }
}
