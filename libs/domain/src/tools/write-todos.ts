import { z } from 'zod';
import { TodoItem } from './execute-code.js';
import { defineTool, type ToolDefinition } from './tool-definition.js';
import type { ToolSessions } from './tool-ports.js';

const TODOS_MAX = 50;

export function writeTodosTool(sessions: ToolSessions): ToolDefinition {
  return defineTool({
    name: 'write_todos',
    title: 'Write todos',
    description:
      'Keeps the plan of a task with several steps: all items with their status, each time. The plan is shown again with every answer of execute_code. An empty list removes it.',
    input: z.strictObject({ todos: z.array(TodoItem).max(TODOS_MAX).describe('The whole plan, in order; at most one item in_progress.') }),
    output: z.strictObject({ todos: z.array(TodoItem).optional() }),
    readOnly: false,
    idempotent: true,
    async run({ todos }, context) {
      const begun = todos.filter(({ status }) => status === 'in_progress').length;
      if (begun > 1) return { success: false, error: `Wrong arguments. "todos" must have at most one item in_progress; it has ${begun}.` };
      await sessions.putTodos(context, todos);
      return { success: true, result: { todos } };
    },
  });
}
