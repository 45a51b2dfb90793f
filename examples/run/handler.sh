#!/bin/sh
echo '{"moldau":1}'
while IFS= read -r line; do
    id=${line#'{"id":'} # a record begins with its id
    id=${id%%,*}
    echo "$line" >&2
    echo "{\"id\":$id,\"ok\":true}"
done
