import { tool } from '@openai/agents';
import { z } from 'zod';
import { DESCRIPTION, Interpreter, type InterpreterOptions } from './interpreter.js';

/** The tool `run_python` for the OpenAI Agents SDK: runs code in a sandbox that keeps names and files between calls. */
export function pythonTool(options: InterpreterOptions = {}) {
  const interpreter = new Interpreter(options);
  return tool({
    name: 'run_python',
    description: DESCRIPTION,
    parameters: z.object({ code: z.string() }),
    execute: async ({ code }) => interpreter.run(code),
  });
}
