module rematch.local/apps

go 1.22
