// Package terminal is the terminal frontend: a chat with a model, questions to the person at the terminal and their
// answers, and the printing of text that comes from others.
//
// IO is the terminal of a process. Its Prompter asks about calls, AnswerQuestions and Watcher answer waiting questions,
// and Chat.Run holds a conversation until the input ends. Printf and Screen escape hidden characters in everything that
// is printed.
package terminal
