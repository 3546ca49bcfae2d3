import type { TaskEvent } from '@etude/contracts/task';
import type { Question, Questions } from '@etude/domain/ports/questions';
import type { RedisJournal } from './journal.js';

/** `Questions` in Redis, for the worker that holds this journal. Questions and answers are kept in the task's hash. */
export function questionsOf(journal: RedisJournal): Questions {
  return {
    async ask(question: Question) {
      const { key, deadlineAt } = question;
      const event: TaskEvent = { type: 'question', ...question };
      const args = [journal.member, key, deadlineAt, JSON.stringify(question), JSON.stringify(event)];
      const outcome = await journal.write<string>('askQuestion', `question "${key}"`, args);
      return outcome === '' ? null : (JSON.parse(outcome) as { answer: string } | 'expired');
    },
  };
}
