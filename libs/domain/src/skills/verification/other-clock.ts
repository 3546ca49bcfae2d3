import { pythonCall, pythonText } from '../../python-files.js';

/** Some seven years, an odd number of days, hours and seconds: another weekday, month and hour, too. */
const AHEAD_S = 222_222_222.25;
const CLOCK = pythonText('other_clock');

/** The code under a clock that is years ahead; its lines keep their numbers. */
export function underOtherClock(code: string): string {
  const file = '__import__("sys")._getframe().f_code.co_filename';
  const move = pythonCall(CLOCK, 'move', [String(AHEAD_S)]);
  return `${move}\nexec(compile(${JSON.stringify(code)}, ${file}, "exec", dont_inherit=True), globals())\n`;
}
