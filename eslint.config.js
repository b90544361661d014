// The language's own rules and the ones that keep pages safe; tsc checks names and types.
export default [
  {
    files: ['src/stepscope/web/static/**/*.js', 'tests/js/**/*.js'],
    languageOptions: { ecmaVersion: 2022, sourceType: 'module' },
    rules: {
      'consistent-return': 'error',
      curly: ['error', 'multi-line'],
      eqeqeq: 'error',
      'no-constant-condition': ['error', { checkLoops: false }],
      'no-dupe-keys': 'error',
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-new-func': 'error',
      'no-self-compare': 'error',
      'no-shadow': 'error',
      'no-unreachable': 'error',
      'no-unused-vars': 'error',
      'no-use-before-define': ['error', { functions: false, classes: false, variables: false }],
      'no-var': 'error',
      'prefer-const': 'error',
      'max-depth': ['error', 5],
      // The limits of the Python side; `??` and `?.` count as branches here.
      complexity: ['error', 12],
      'max-lines-per-function': ['error', { max: 50, skipBlankLines: true, skipComments: true }],
      'max-params': ['error', 7],
      'max-len': ['error', { code: 120, ignoreUrls: true }],
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML', message: 'Names of a trace are text: use textContent.' },
        { property: 'outerHTML', message: 'Names of a trace are text: use textContent.' },
        { property: 'insertAdjacentHTML', message: 'Names of a trace are text: use textContent.' },
        { object: 'document', property: 'write', message: 'Names of a trace are text: use textContent.' },
      ],
    },
  },
];
