package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"queuelab/bench/host"
	"queuelab/bench/learn"
	"queuelab/bench/learn/book"
	"queuelab/bench/learn/lessons"
	"queuelab/bench/museum"
)

// book runs all lessons and exhibits, and writes them as a site into a directory.
func (c learnCmd) book(e *env) error {
	if err := bookDir(c.Book); err != nil {
		return usage(e, err)
	}
	exhibits := museum.All()
	all := lessons.All()
	planned := append(slices.Clone(all), museum.Lessons(exhibits)...)
	if err := c.answer(e.ctx, planned); err != nil {
		return err
	}
	began := time.Now()
	facts := host.Facts(e.ctx, os.TempDir())
	show := func(r learn.Result) error { return learn.PrintLine(e.stderr, r, c.lang()) }
	results, err := c.try(e, planned, nil, show)
	if err != nil {
		_ = os.Remove(c.Book) // if nothing is in it
		return err
	}
	told, shown := results[:len(all)], results[len(all):]
	text := func(en, zh string) learn.Text { return learn.Text{EN: en, ZH: zh} }
	both := func(same string) learn.Text { return text(same, same) }
	where := text("brokers, clients and database on this one machine, over the loopback address", "中间件、客户端与数据库同在这一台机器，走回环地址")
	if given := strings.Join(slices.Sorted(maps.Keys(c.external())), ", "); given != "" {
		where = text("clients on this machine, with brokers started on it, but for those given by URL: "+given, "客户端在这一台机器上，中间件也在这里启动，但以下由 URL 给出："+given)
	}
	edition := book.Edition{
		Lessons: told, Museum: shown, Exhibits: exhibits, At: began,
		Conditions: []book.Condition{
			{Name: text("Machine", "机器"), Value: text(
				fmt.Sprintf("%s, %d cores, %.0f GB, kernel %s", facts.CPU, facts.Cores, float64(facts.MemoryBytes)/1e9, facts.Kernel),
				fmt.Sprintf("%s，%d 核，%.0f GB，内核 %s", facts.CPU, facts.Cores, float64(facts.MemoryBytes)/1e9, facts.Kernel))},
			{Name: text("Load before", "运行前负载"), Value: both(fmt.Sprintf("%.1f", facts.Load1))},
			{Name: text("Program", "程序"), Value: both(fmt.Sprintf("queuelab %s, %s, %s/%s", commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH))},
			{Name: text("Where", "位置"), Value: where},
		},
	}
	if err := book.Write(c.Book, edition); err != nil {
		return err
	}
	if err := book.CheckLinks(c.Book); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s\n", filepath.Join(c.Book, "index.html"))
	return learned(e, results)
}

// bookDir refuses a directory that holds something else than a book, or that
// cannot be written, before the minutes that it takes to do all lessons.
func bookDir(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--book: %w", err)
	}
	if len(files) > 0 {
		if _, err := os.Stat(filepath.Join(dir, "book.css")); err != nil {
			return fmt.Errorf("--book %s: the directory holds something else than a book; name an empty or a new one", dir)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--book: %w", err)
	}
	probe, err := os.CreateTemp(dir, ".queuelab-")
	if err != nil {
		return fmt.Errorf("--book: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("--book: %w", err)
	}
	return nil
}
