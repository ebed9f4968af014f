package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// question is what a worker is asked: see reconciler/plan/clauses_test.go.
type question struct {
	Mutant int
	Tests  []string
	// Short runs the tests with -short, in which those that draw histories draw a few.
	Short     bool
	Histories []int
}

// answer is what came of one test or history.
type answer struct {
	Test    string
	Failed  bool
	History int
	Broken  string
	Seen    []int
	Done    bool
}

// worker is a process that runs the tests of the plan, one after the other. A mutant that
// takes it down is caught, and the next question goes to a new one.
type worker struct {
	root, binary string
	process      *exec.Cmd
	questions    io.WriteCloser
	answers      *os.File
	decoder      *json.Decoder
}

func (w *worker) start() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer write.Close()
	w.process = exec.Command(w.binary, "-test.timeout=0")
	w.process.Dir = filepath.Join(w.root, planDir)
	w.process.Env = append(os.Environ(), "GOMAXPROCS=1", "GOTRACEBACK=none")
	w.process.ExtraFiles = []*os.File{write}
	if w.questions, err = w.process.StdinPipe(); err != nil {
		return err
	}
	w.answers, w.decoder = read, json.NewDecoder(read)
	return w.process.Start()
}

// stop ends the process.
func (w *worker) stop() {
	if w.process == nil {
		return
	}
	_ = w.questions.Close()
	_ = w.process.Wait()
	_ = w.answers.Close()
	w.process = nil
}

// ask asks a question, and calls with each answer. Where the process ends before it is
// done, crashed says so.
func (w *worker) ask(q question, with func(answer)) (crashed bool, err error) {
	if w.process == nil {
		if err := w.start(); err != nil {
			return false, fmt.Errorf("start %s: %w", w.binary, err)
		}
	}
	if err := json.NewEncoder(w.questions).Encode(q); err != nil {
		return false, fmt.Errorf("ask %s: %w", w.binary, err)
	}
	for {
		var a answer
		if err := w.decoder.Decode(&a); err != nil {
			w.stop()
			return true, nil
		}
		if a.Done {
			return false, nil
		}
		with(a)
	}
}
