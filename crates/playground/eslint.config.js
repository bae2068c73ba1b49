// What a type checker does not see.
export default [
  {
    languageOptions: { ecmaVersion: 2024, sourceType: "module" },
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-console": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-shadow": "error",
      "no-unused-vars": "error",
      "no-var": "error",
      "prefer-const": "error",
      "no-fallthrough": "error",
      "no-self-compare": "error",
      "no-unreachable": "error",
      "no-useless-return": "error",
    },
  },
];
