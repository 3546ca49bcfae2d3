/** Two texts and how they belong together, judged by people: nearly the same words, the same in other words, or not the same. */
export interface LabelledPair {
  readonly a: string;
  readonly b: string;
  readonly same: 'words' | 'task' | 'no';
}

export const pairs = (same: LabelledPair['same'], texts: ReadonlyArray<readonly [string, string]>): LabelledPair[] =>
  texts.map(([a, b]) => ({ a, b, same }));

/**
 * Programming tasks that share most of their words or few: `task` differs in a name, numbers or a few words.
 *
 * What the lexical embedder was fitted on, and must judge right.
 */
export const NEAR_TASKS: readonly LabelledPair[] = [
  ...pairs('words', [
    [
      'Write a function total_even(numbers) that returns the sum of the even numbers in a list.',
      'Write a function total_even(numbers) which returns the sum of the even numbers in the list',
    ],
    [
      'Read lines of CSV from standard input and print the average of the second column.',
      'Read the lines of a CSV from standard input, and print the average of the second column',
    ],
    [
      'Write a function is_palindrome(text) that tells whether a text reads the same backwards.',
      'Write a function is_palindrome(text) which tells whether the text reads the same backwards.',
    ],
    ['Find the shortest path between two nodes of a weighted graph.', 'find the shortest path between 2 nodes of a weighted graph'],
    ['Convert a Roman numeral to an integer.', 'Convert Roman numerals to integers'],
    [
      'Merge overlapping intervals and return them sorted by start.',
      'Merge the overlapping intervals and return them, sorted by their start.',
    ],
  ]),
  ...pairs('task', [
    [
      'Write a function total_even(numbers) that returns the sum of the even numbers in a list',
      'Write a function sum_of_evens(values) that returns the sum of the even values in a list',
    ],
    [
      'Write a function count_vowels(text) that returns how many vowels a text holds.',
      'Implement vowel_count(s): return how many vowels the string s contains.',
    ],
    [
      'Read an integer n and print the sum of all multiples of 3 or 5 below n.',
      'Read a number limit and print the sum of all multiples of 4 or 7 below limit.',
    ],
    [
      'Write a function reverse_words(sentence) that reverses the order of the words.',
      'Write a function flip_words(line) that returns the words of a line in reverse order.',
    ],
    [
      'Write a function rotate_left(items, k) that rotates a list by k places to the left.',
      'Write a function shift_left(xs, n) that rotates the list n places left.',
    ],
    [
      'Read two numbers from standard input and print their greatest common divisor.',
      'Read three numbers from standard input and print the greatest common divisor of them.',
    ],
    [
      'Write a function slugify(title) that makes a URL slug: lower case, words joined by hyphens.',
      'Write a function to_slug(name) that makes a URL slug of a name: lower case, words joined by hyphens.',
    ],
    ['Write a function nth_prime(n) that returns the n-th prime number.', 'Write prime_at(k), returning the k-th prime number.'],
    [
      'Write a function parse_duration(text) that turns "1h30m" into seconds.',
      'Write a function seconds_of(duration) that turns a duration such as "2h15m" into seconds.',
    ],
    [
      'Write a function run_length(text) that compresses a text with run-length encoding.',
      'Write a function rle(s) that applies run-length encoding to compress the string s.',
    ],
  ]),
  ...pairs('no', [
    [
      'Write a function total_even(numbers) that returns the sum of the even numbers in a list',
      'Write a function longest(words) that returns the longest word in a list',
    ],
    [
      'Write a function total_even(numbers) that returns the sum of the even numbers in a list',
      'Write a function is_palindrome(text) that returns whether a text reads the same backwards',
    ],
    [
      'Write a function count_vowels(text) that returns how many vowels a text holds.',
      'Write a function rotate_left(items, k) that rotates a list by k places to the left.',
    ],
    [
      'Read an integer n and print the sum of all multiples of 3 or 5 below n.',
      'Read two words and print whether they are anagrams of each other.',
    ],
    [
      'Write a function nth_prime(n) that returns the n-th prime number.',
      'Write a function nth_fibonacci(n) that returns the n-th Fibonacci number.',
    ],
    [
      'Write a function reverse_words(sentence) that reverses the order of the words.',
      'Write a function count_words(sentence) that counts how often each word occurs.',
    ],
    [
      'Write a function slugify(title) that makes a URL slug: lower case, words joined by hyphens.',
      'Write a function parse_csv(line) that splits a line at commas outside quotes.',
    ],
    ['Convert a Roman numeral to an integer.', 'Convert a temperature from Celsius to Fahrenheit.'],
    ['Find the shortest path between two nodes of a weighted graph.', 'Find the longest common subsequence of two strings.'],
    [
      'Merge overlapping intervals and return them sorted by start.',
      'Given a list of prices, return the best profit from one purchase and one sale.',
    ],
    [
      'Write a function parse_duration(text) that turns "1h30m" into seconds.',
      'Write a function word_wrap(text, width) that breaks a text into lines.',
    ],
    [
      'Write a function run_length(text) that compresses a text with run-length encoding.',
      'Write a function median(numbers) that returns the median of a list of numbers.',
    ],
    [
      'Read two numbers from standard input and print their greatest common divisor.',
      'Read a grid from standard input and print how many islands it holds.',
    ],
    [
      'Write a function max_of(numbers) that returns the largest number in a list.',
      'Write a function unique(items) that removes duplicates from a list and keeps the order.',
    ],
  ]),
];
