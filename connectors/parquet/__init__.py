"""Lines to a folder of Parquet files; pyarrow is needed (extra `parquet`)."""
