import type { Question, Questions } from '../src/ports/journal.js';

/** Answers questions by their keys; the answer "expired" is none. Without an answer a question stays open. */
export class FakeQuestions implements Questions {
  readonly asked: Question[] = [];

  constructor(readonly answers: Record<string, string> = {}) {}

  async ask(question: Question): Promise<{ readonly answer: string } | 'expired' | null> {
    this.asked.push(question);
    const answer = this.answers[question.key];
    if (answer === undefined) return null;
    return answer === 'expired' ? answer : { answer };
  }
}
