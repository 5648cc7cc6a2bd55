module versus-go

go 1.19
